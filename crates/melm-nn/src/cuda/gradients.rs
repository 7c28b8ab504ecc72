//! Gradients on a card: a block laid out like the parameters, and the table's in factors.

use super::Cuda;
use super::kernels::Kernels;
use super::machine::{Numbers, Span};
use super::memory::{Block, read_floats};
use crate::error::Error;
use crate::params::Parameters;
use std::ops::Range;
use std::sync::Arc;

/// Gradients of one step on a card.
pub(crate) struct CardGradients {
    pub(super) kernels: Arc<Kernels>,
    pub(super) values: Block,
    /// The head's errors, one row a masked position, as wide as the table is long; and the rows before the table.
    errors: Block,
    states: Block,
    pub(super) n_states: usize,
    /// The gradients of looked-up rows, in the order of the batches.
    lookup_rows: Block,
    pub(super) n_lookup_rows: usize,
    /// Piece and row of each lookup.
    pub(super) lookups: Vec<(u32, u32)>,
    pub(super) width: usize,
    size: usize,
}

impl CardGradients {
    pub(crate) fn new(
        cuda: &Cuda,
        kernels: &Arc<Kernels>,
        parameters: &Parameters,
    ) -> Result<Self, Error> {
        let table = parameters.table();
        let machine = &cuda.machine;
        Ok(Self {
            kernels: Arc::clone(kernels),
            values: Block::zeros(machine, table.range.start * size_of::<f32>())?,
            errors: Block::empty(machine),
            states: Block::empty(machine),
            n_states: 0,
            lookup_rows: Block::empty(machine),
            n_lookup_rows: 0,
            lookups: Vec::new(),
            width: table.shape[1],
            size: cuda.precision.size(),
        })
    }

    /// Whether they are on this card.
    pub(crate) fn are_on(&self, cuda: &Cuda) -> bool {
        Arc::ptr_eq(self.values.machine(), &cuda.machine)
    }

    /// The place of a gradient.
    pub(super) fn at(&self, range: &Range<usize>) -> Span<f32> {
        self.values.span().part(range.clone())
    }

    pub(crate) fn clear(&mut self) {
        self.n_states = 0;
        self.n_lookup_rows = 0;
        self.lookups.clear();
    }

    /// Whether the table has a gradient.
    pub(crate) fn has_table(&self) -> bool {
        self.n_states + self.n_lookup_rows > 0
    }

    /// Makes room for `n_states` more masked positions with errors `stride` wide, and `n_lookups` more looked-up rows, so
    /// that a batch begins with all the memory that it needs.
    pub(super) fn make_room(
        &mut self,
        (n_states, stride): (usize, usize),
        n_lookups: usize,
    ) -> Result<(), Error> {
        let (size, width) = (self.size, self.width);
        let (start, end) = (self.n_states, self.n_states + n_states);
        self.errors.grow(start * stride * size, end * stride * size)?;
        self.states.grow(start * width * size, end * width * size)?;
        let (start, end) = (self.n_lookup_rows, self.n_lookup_rows + n_lookups);
        self.lookup_rows.grow(start * width * size_of::<f32>(), end * width * size_of::<f32>())
    }

    /// The place of the factors of `n` more masked positions, for which there is room: errors and states.
    pub(super) fn next_states(&mut self, n: usize, stride: usize) -> (Numbers, Numbers) {
        let (start, end) = (self.n_states, self.n_states + n);
        self.n_states = end;
        let errors = self.errors.numbers(self.size).part(start * stride..end * stride);
        let states = self.states.numbers(self.size).part(start * self.width..end * self.width);
        (errors, states)
    }

    /// Drops the newest factors: for a table that is not trained.
    pub(super) fn forget_states(&mut self, n: usize) {
        self.n_states -= n;
    }

    /// All factors of the step.
    pub(super) fn factors(&self, stride: usize) -> (Numbers, Numbers) {
        let n_rows = self.n_states;
        let part = |block: &Block, width| block.numbers(self.size).part(0..n_rows * width);
        (part(&self.errors, stride), part(&self.states, self.width))
    }

    /// The place of the gradients of one more batch's looked-up rows, for which there is room, those that fill it up
    /// included; the padding piece has none, as in torch.
    pub(super) fn next_lookups(
        &mut self,
        (pieces, n_rows): (&[u32], usize),
        pad_id: u32,
    ) -> Span<f32> {
        let (start, end) = (self.n_lookup_rows, self.n_lookup_rows + n_rows);
        self.n_lookup_rows = end;
        let found = pieces.iter().zip(super::n32(start)..).filter(|(piece, _)| **piece != pad_id);
        self.lookups.extend(found.map(|(piece, row)| (*piece, row)));
        self.lookup_rows.span().part(start * self.width..end * self.width)
    }

    pub(super) fn lookup_rows(&self) -> Span<f32> {
        self.lookup_rows.span().first(self.n_lookup_rows * self.width)
    }

    /// Copies everything but the table's gradient back.
    pub(crate) fn read(&self, out: &mut [f32]) -> Result<(), Error> {
        let values = self.values.span();
        read_floats(&**self.values.machine(), values.first(out.len()), out)
    }
}
