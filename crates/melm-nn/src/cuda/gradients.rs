//! Gradients in GPU memory: one buffer with the layout of the parameters, and the two factors of the embedding table's
//! gradient.

use super::Cuda;
use super::kernels::Kernels;
use super::memory::{DeviceBuffer, download_floats};
use super::span::{FloatSpan, Span};
use super::to_u32;
use super::weights::padded_table_rows;
use crate::error::Error;
use crate::params::Parameters;
use std::ops::Range;
use std::sync::Arc;

/// The gradients of one optimiser step.
///
/// The gradient of the embedding table is never stored whole. It has two parts. The part from the masked-LM head is
/// stored as two factors, whose product is computed when needed. The part from the lookups is a list of rows. Both
/// contain only the trained rows of the table.
pub(crate) struct GpuGradients {
    pub(super) kernels: Arc<Kernels>,
    pub(super) values: DeviceBuffer,
    /// The gradients of the masked-LM scores: one row for each masked position, `stride` columns, one for each trained
    /// row of the table and padding.
    errors: DeviceBuffer,
    /// The gradients of all scores of the current batch, if some rows of the table are frozen.
    whole_errors: DeviceBuffer,
    /// The hidden states that the head multiplies by the table: one row for each masked position.
    states: DeviceBuffer,
    pub(super) n_states: usize,
    /// The gradients of the looked-up table rows, batch after batch.
    lookup_rows: DeviceBuffer,
    n_lookup_rows: usize,
    /// The lookups of the step, batch after batch.
    pub(super) lookups: Vec<Lookup>,
    pub(super) width: usize,
    /// The trained rows of the table.
    pub(super) trained: Range<usize>,
    /// The number of columns of `errors`.
    pub(super) stride: usize,
    operand_size: usize,
}

/// One lookup in the embedding table. Lookups are ordered by piece.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Lookup {
    pub(super) piece: u32,
    /// The index of the lookup's gradient in `lookup_rows`.
    pub(super) row: u32,
}

/// The two factors of the table's gradient from the masked-LM head, which is `errors^T states`.
#[derive(Clone, Copy)]
pub(super) struct TableFactors {
    pub(super) errors: FloatSpan,
    pub(super) states: FloatSpan,
}

/// Where a batch writes its factors.
#[derive(Clone, Copy)]
pub(super) struct BatchFactors {
    /// The gradients of all scores. They are `kept.errors` if the whole table is trained.
    pub(super) whole_errors: FloatSpan,
    /// The factors that stay until the optimiser's step; empty if no row of the table is trained.
    pub(super) kept: TableFactors,
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
            whole_errors: DeviceBuffer::empty(gpu),
            states: DeviceBuffer::empty(gpu),
            n_states: 0,
            lookup_rows: DeviceBuffer::empty(gpu),
            n_lookup_rows: 0,
            lookups: Vec::new(),
            width: table.shape[1],
            trained: table.trained_rows(),
            stride: 0,
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

    /// Removes the table's gradient, for a new step. The first batch of the step overwrites the other gradients.
    pub(crate) fn clear(&mut self) {
        self.n_states = 0;
        self.n_lookup_rows = 0;
        self.lookups.clear();
    }

    /// Returns the size of a number that products read, in bytes.
    pub(super) fn operand_size(&self) -> usize {
        self.operand_size
    }

    /// Returns true if the table has a gradient.
    pub(super) fn has_table(&self) -> bool {
        self.n_states + self.n_lookup_rows > 0
    }

    /// Allocates room for `n_states` more masked positions with `n_scores` scores each, and for `n_lookups` more
    /// looked-up rows. `trained` are the trained rows of the table. Call this before a batch, so that running out of
    /// memory is noticed before anything is computed.
    pub(super) fn reserve(
        &mut self,
        n_states: usize,
        n_scores: usize,
        n_lookups: usize,
        trained: Range<usize>,
    ) -> Result<(), Error> {
        let (size, width) = (self.operand_size, self.width);
        let (start, end) = (self.n_states, self.n_states + n_states);
        self.trained = trained;
        self.stride = padded_table_rows(self.trained.len());
        if self.trained.start > 0 {
            self.whole_errors.reserve(n_states * n_scores * size)?;
        }
        let stride = self.stride;
        self.errors.grow(start * stride * size, end * stride * size)?;
        self.states.grow(start * width * size, end * width * size)?;
        let (start, end) = (self.n_lookup_rows, self.n_lookup_rows + n_lookups);
        self.lookup_rows.grow(start * width * size_of::<f32>(), end * width * size_of::<f32>())
    }

    /// Adds `n` masked positions with `n_scores` scores each, for which [`Self::reserve`] allocated room. Returns the
    /// factors of these positions, for the caller to write. If no row of the table is trained, nothing is added.
    pub(super) fn push_states(&mut self, n: usize, n_scores: usize) -> BatchFactors {
        let start = self.n_states;
        if !self.trained.is_empty() {
            self.n_states += n;
        }
        let kept = self.factors_of(start..self.n_states);
        let whole_errors = match self.trained.start {
            0 => kept.errors,
            _ => self.whole_errors.floats(self.operand_size).slice(0..n * n_scores),
        };
        BatchFactors { whole_errors, kept }
    }

    /// Returns the factors of all masked positions of the step.
    pub(super) fn factors(&self) -> TableFactors {
        self.factors_of(0..self.n_states)
    }

    fn factors_of(&self, rows: Range<usize>) -> TableFactors {
        let stride = self.stride;
        let part = |buffer: &DeviceBuffer, width: usize| {
            buffer.floats(self.operand_size).slice(rows.start * width..rows.end * width)
        };
        TableFactors { errors: part(&self.errors, stride), states: part(&self.states, self.width) }
    }

    /// Adds the lookups of trained rows in a batch, for which [`Self::reserve`] allocated room. Returns the gradients of
    /// the `n_rows` rows of the batch, including padding rows, for the caller to write. The padding piece gets no
    /// gradient, as in torch.
    pub(super) fn push_lookups(&mut self, pieces: &[u32], n_rows: usize, pad_id: u32) -> Span<f32> {
        let (start, end) = (self.n_lookup_rows, self.n_lookup_rows + n_rows);
        self.n_lookup_rows = end;
        let trained = &self.trained;
        let is_trained = |piece: u32| piece != pad_id && trained.contains(&(piece as usize));
        let looked_up = pieces.iter().zip(to_u32(start)..).filter(|(piece, _)| is_trained(**piece));
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
