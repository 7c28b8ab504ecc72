//! The parameters of a model in GPU memory: the f32 master copy, and with bf16 precision also a bf16 copy, which
//! products read.

use super::commands::GraphKey;
use super::kernels::{Grid, Kernels, launch};
use super::memory::{DeviceBuffer, download_floats, upload_floats};
use super::settings::Precision;
use super::span::{FloatSpan, Span};
use super::{Cuda, SPLITS};
use crate::error::Error;
use crate::params::Parameters;
use std::ops::Range;
use std::sync::Arc;

/// A duplicate is made only if the free memory is at least this many times its size, because later batches may be
/// longer and other training runs may share the GPU. The number is a guess.
const FREE_FACTOR: usize = 4;

/// Parameters in GPU memory. Rows of zeros are appended to the embedding table, so that its rows can be split into
/// equal parts.
pub(crate) struct GpuWeights {
    master: DeviceBuffer,
    /// The bf16 copy; `None` if products read f32.
    rounded: Option<DeviceBuffer>,
    table: Range<usize>,
    width: usize,
    /// The number of rows of the embedding table, including padding.
    pub(super) n_table_rows: usize,
}

/// Returns the number of rows of an embedding table of `n_rows` rows after padding. The padded table has `SPLITS` equal parts of a length suitable for
/// products.
pub(super) fn padded_table_rows(n_rows: usize) -> usize {
    n_rows.next_multiple_of(8 * SPLITS)
}

impl GpuWeights {
    /// Copies the parameters to GPU memory.
    pub(crate) fn upload(
        cuda: &Cuda,
        kernels: &Kernels,
        parameters: &Parameters,
    ) -> Result<Self, Error> {
        let table = parameters.table();
        let (vocab_size, width) = (table.shape[0], table.shape[1]);
        let n_table_rows = padded_table_rows(vocab_size);
        let len = table.range.start + n_table_rows * width;
        let master = DeviceBuffer::zeros(&cuda.gpu, len * size_of::<f32>())?;
        upload_floats(&*cuda.gpu, parameters.values(), master.span())?;
        let rounded = match cuda.precision {
            Precision::F32 => None,
            Precision::Bf16 => {
                let rounded = DeviceBuffer::zeros(&cuda.gpu, len * size_of::<u16>())?;
                let (from, to) = (master.span::<f32>(), rounded.span::<u16>());
                launch!(kernels, RoundWeights, Grid::linear(1024, 256), from, to);
                Some(rounded)
            }
        };
        Ok(Self { master, rounded, table: table.range.clone(), width, n_table_rows })
    }

    /// Returns the key of the CUDA graph that runs a pass with these weights.
    pub(super) fn graph_key(&self, pass: &'static str, sizes: [usize; 3]) -> GraphKey {
        let weights = self.master.span::<f32>().address;
        GraphKey { pass, weights, sizes }
    }

    /// Returns true if the weights are in the memory of this GPU.
    pub(crate) fn is_on(&self, cuda: &Cuda) -> bool {
        Arc::ptr_eq(self.master.gpu(), &cuda.gpu)
    }

    /// Makes a second copy in GPU memory. Returns `None` if too little memory would remain for passes.
    pub(crate) fn duplicate(&self) -> Result<Option<Self>, Error> {
        let rounded = self.rounded.as_ref().map_or(0, DeviceBuffer::n_bytes);
        if self.master.gpu().memory()?.free < FREE_FACTOR * (self.master.n_bytes() + rounded) {
            return Ok(None);
        }
        let zeros = |like: &DeviceBuffer| DeviceBuffer::zeros(like.gpu(), like.n_bytes());
        let duplicate = Self {
            master: zeros(&self.master)?,
            rounded: self.rounded.as_ref().map(zeros).transpose()?,
            table: self.table.clone(),
            width: self.width,
            n_table_rows: self.n_table_rows,
        };
        duplicate.copy_from(self)?;
        Ok(Some(duplicate))
    }

    /// Returns true if [`Self::copy_from`] can be used: both are on the same GPU and have the same size.
    pub(crate) fn has_layout_of(&self, other: &Self) -> bool {
        Arc::ptr_eq(self.master.gpu(), other.master.gpu())
            && self.master.n_bytes() == other.master.n_bytes()
    }

    /// Copies the values of `other`, which must have the same layout.
    pub(crate) fn copy_from(&self, other: &Self) -> Result<(), Error> {
        self.master.copy_from(&other.master)?;
        match (&self.rounded, &other.rounded) {
            (Some(own), Some(others)) => own.copy_from(others),
            _ => Ok(()),
        }
    }

    /// Returns the f32 master copy of the parameters in `range`, which the optimiser updates.
    pub(super) fn master(&self, range: &Range<usize>) -> Span<f32> {
        self.master.span().slice(range.clone())
    }

    /// Returns the parameters in `range` as an operand of the same type as `other`.
    pub(super) fn operand_like(&self, other: FloatSpan, range: &Range<usize>) -> FloatSpan {
        if other.is_f32() {
            return FloatSpan::from_f32(self.master(range));
        }
        self.operand(range)
    }

    /// Returns the parameters in `range` in the type that products read.
    pub(super) fn operand(&self, range: &Range<usize>) -> FloatSpan {
        match &self.rounded {
            None => FloatSpan::from_f32(self.master(range)),
            Some(rounded) => rounded.floats(size_of::<u16>()).slice(range.clone()),
        }
    }

    /// Returns the padded embedding table in the type that products read.
    pub(super) fn table_operand(&self) -> FloatSpan {
        self.operand(&(self.table.start..self.table.start + self.n_table_rows * self.width))
    }

    /// Returns the bf16 copy of the parameters in `range`, which the optimiser also updates; empty if there is no bf16
    /// copy.
    pub(super) fn rounded(&self, range: &Range<usize>) -> Span<u16> {
        match &self.rounded {
            None => Span::default(),
            Some(rounded) => rounded.span().slice(range.clone()),
        }
    }

    /// Copies the parameters in `range` to CPU memory.
    pub(crate) fn download(&self, range: &Range<usize>, out: &mut [f32]) -> Result<(), Error> {
        download_floats(&**self.master.gpu(), self.master(range), out)
    }
}
