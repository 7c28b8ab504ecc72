//! Gradients in GPU memory: one buffer laid out like the parameters, and the gradient of the embedding table in factors.

use super::Cuda;
use super::kernels::Kernels;
use super::memory::{DeviceBuffer, download_floats};
use super::span::{FloatSpan, Span};
use super::to_u32;
use crate::error::Error;
use crate::params::Parameters;
use std::ops::Range;
use std::sync::Arc;

/// The gradients of one step.
///
/// The table's gradient is never stored whole. Its masked-LM part is the product of two factors, and its lookup part is a
/// list of rows.
pub(crate) struct GpuGradients {
    pub(super) kernels: Arc<Kernels>,
    pub(super) values: DeviceBuffer,
    /// The errors of the masked-LM head: a row for each masked position, as wide as the padded table is long.
    errors: DeviceBuffer,
    /// The hidden states that the head multiplies with the table: a row for each masked position.
    states: DeviceBuffer,
    pub(super) n_states: usize,
    /// The gradients of looked-up rows, in the order of the batches.
    lookup_rows: DeviceBuffer,
    n_lookup_rows: usize,
    /// The lookups of the step, in the order of the batches.
    pub(super) lookups: Vec<Lookup>,
    pub(super) width: usize,
    operand_size: usize,
}

/// One lookup in the embedding table. Sorts by piece.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Lookup {
    pub(super) piece: u32,
    /// The row of its gradient.
    pub(super) row: u32,
}

/// The two factors of the table's gradient: it is `errors^T states`.
#[derive(Clone, Copy)]
pub(super) struct TableFactors {
    pub(super) errors: FloatSpan,
    pub(super) states: FloatSpan,
}

impl GpuGradients {
    pub(crate) fn new(
        cuda: &Cuda,
        kernels: &Arc<Kernels>,
        parameters: &Parameters,
    ) -> Result<Self, Error> {
        let table = parameters.table();
        let gpu = &cuda.gpu;
        Ok(Self {
            kernels: Arc::clone(kernels),
            values: DeviceBuffer::zeros(gpu, table.range.start * size_of::<f32>())?,
            errors: DeviceBuffer::empty(gpu),
            states: DeviceBuffer::empty(gpu),
            n_states: 0,
            lookup_rows: DeviceBuffer::empty(gpu),
            n_lookup_rows: 0,
            lookups: Vec::new(),
            width: table.shape[1],
            operand_size: cuda.precision.size(),
        })
    }

    /// Returns true if the gradients are in the memory of this GPU.
    pub(crate) fn is_on(&self, cuda: &Cuda) -> bool {
        Arc::ptr_eq(self.values.gpu(), &cuda.gpu)
    }

    /// Returns the gradient of the parameters in `range`.
    pub(super) fn at(&self, range: &Range<usize>) -> Span<f32> {
        self.values.span().slice(range.clone())
    }

    /// Forgets the table's gradient, for a new step. The other gradients are overwritten by the first batch.
    pub(crate) fn clear(&mut self) {
        self.n_states = 0;
        self.n_lookup_rows = 0;
        self.lookups.clear();
    }

    /// Returns true if the table has a gradient.
    pub(super) fn has_table(&self) -> bool {
        self.n_states + self.n_lookup_rows > 0
    }

    /// Makes room for `n_states` more masked positions with errors `stride` wide, and for `n_lookups` more looked-up rows.
    /// Called before a batch starts, so that a lack of memory is noticed before anything is computed.
    pub(super) fn reserve(
        &mut self,
        n_states: usize,
        stride: usize,
        n_lookups: usize,
    ) -> Result<(), Error> {
        let (size, width) = (self.operand_size, self.width);
        let (start, end) = (self.n_states, self.n_states + n_states);
        self.errors.grow(start * stride * size, end * stride * size)?;
        self.states.grow(start * width * size, end * width * size)?;
        let (start, end) = (self.n_lookup_rows, self.n_lookup_rows + n_lookups);
        self.lookup_rows.grow(start * width * size_of::<f32>(), end * width * size_of::<f32>())
    }

    /// Adds `n` masked positions, for which [`Self::reserve`] made room. Returns the factors to write.
    pub(super) fn push_states(&mut self, n: usize, stride: usize) -> TableFactors {
        let (start, end) = (self.n_states, self.n_states + n);
        self.n_states = end;
        self.factors_of(start..end, stride)
    }

    /// Drops the last `n` masked positions: for a table that is not trained.
    pub(super) fn pop_states(&mut self, n: usize) {
        self.n_states -= n;
    }

    /// Returns the factors of all masked positions of the step.
    pub(super) fn factors(&self, stride: usize) -> TableFactors {
        self.factors_of(0..self.n_states, stride)
    }

    fn factors_of(&self, rows: Range<usize>, stride: usize) -> TableFactors {
        let part = |buffer: &DeviceBuffer, width: usize| {
            buffer.floats(self.operand_size).slice(rows.start * width..rows.end * width)
        };
        TableFactors { errors: part(&self.errors, stride), states: part(&self.states, self.width) }
    }

    /// Adds the lookups of a batch, for which [`Self::reserve`] made room. Returns the gradients to write: `n_rows` rows,
    /// which include the rows that pad the batch. The padding piece gets no gradient, as in torch.
    pub(super) fn push_lookups(&mut self, pieces: &[u32], n_rows: usize, pad_id: u32) -> Span<f32> {
        let (start, end) = (self.n_lookup_rows, self.n_lookup_rows + n_rows);
        self.n_lookup_rows = end;
        let looked_up = pieces.iter().zip(to_u32(start)..).filter(|(piece, _)| **piece != pad_id);
        self.lookups.extend(looked_up.map(|(piece, row)| Lookup { piece: *piece, row }));
        self.lookup_rows.span().slice(start * self.width..end * self.width)
    }

    /// Returns the gradients of all looked-up rows of the step.
    pub(super) fn lookup_rows(&self) -> Span<f32> {
        self.lookup_rows.span().first(self.n_lookup_rows * self.width)
    }

    /// Copies all gradients except the table's to CPU memory.
    pub(crate) fn download(&self, out: &mut [f32]) -> Result<(), Error> {
        let values = self.values.span();
        download_floats(&**self.values.gpu(), values.first(out.len()), out)
    }
}
