//! The gradient of the piece table, stored as factors.
//!
//! The masked-LM head contributes `P^T Z`. `P` is the gradient of the scores `[masked rows, vocabulary]`, and `Z` holds
//! the hidden rows that the table is multiplied by. The lookup of the input embeddings adds a few rows. The dense
//! gradient is never stored: Adam requests one block of table rows at a time. The norm for clipping is computed from
//! two small matrices, because `|P^T Z|^2` is the sum over the elements of `P P^T * Z Z^T`.
//!
//! If the first rows of the table are frozen, the factors contain only the trained rows, so that norm and update cost
//! next to nothing if these are few.

use crate::buffer::Buffer;
use crate::device::Cpu;
use crate::error::Error;
use crate::isa::Isa;
use crate::ops::{add, dot};
use crate::product::{
    Left, Out, Right, Shape, extent, pack_rows, part as cut, small_product, small_product_ahead,
};
use crate::split::Split;
use std::ops::Range;

/// The number of tasks that a sum over the vocabulary is split into. It is fixed, so that the order of summation is
/// fixed too.
const N_GROUPS: usize = 16;
/// The number of table rows whose score gradients stay in the cache while they are multiplied by each other.
const RUN: usize = 256;

/// The number of arrays that an optimiser reads in addition to the gradient: the values and two moments.
const N_STREAMS: usize = 3;

/// The factors of the head's gradient for one micro-batch.
#[derive(Default)]
pub(crate) struct HeadFactors {
    /// The number of masked rows.
    pub(crate) n: usize,
    /// `P^T`, of shape `[table rows, stride]`: the trained rows, or the whole vocabulary while a micro-batch runs.
    pub(crate) errors: Buffer,
    pub(crate) stride: usize,
    /// `Z`, of shape `[n, hidden]`.
    pub(crate) states: Buffer,
    /// A copy of `Z` in panels of columns.
    panels: Buffer,
}

impl HeadFactors {
    fn reserve(&mut self, n: usize, n_rows: usize, width: usize) -> Result<(), Error> {
        (self.n, self.stride) = (n, n.next_multiple_of(16));
        self.errors.try_reserve(n_rows * self.stride)?;
        self.states.try_reserve(n * width)
    }

    /// Copies the factors of `whole`, whose errors have `n_rows` rows, without the table rows before `first_row`.
    fn copy_rows(
        &mut self,
        whole: &Self,
        first_row: usize,
        n_rows: usize,
        width: usize,
    ) -> Result<(), Error> {
        self.reserve(whole.n, n_rows - first_row, width)?;
        let (errors, states) = (first_row * whole.stride..n_rows * whole.stride, whole.n * width);
        self.errors[..errors.len()].copy_from_slice(&whole.errors[errors]);
        self.states[..states].copy_from_slice(&whole.states[..states]);
        Ok(())
    }
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Lookup {
    piece: u32,
    part: usize,
    row: usize,
}

/// The gradient of the table for one step.
#[derive(Default)]
pub(crate) struct TableGradient {
    vocab_size: usize,
    width: usize,
    /// The first trained row: 0 if the table is not frozen, the size of the vocabulary if no row is trained.
    first_row: usize,
    heads: Vec<HeadFactors>,
    n_heads: usize,
    /// The factors of the current micro-batch for the whole vocabulary, if some rows are frozen.
    whole: HeadFactors,
    lookups: Vec<Lookup>,
    lookup_rows: Vec<Buffer>,
    n_lookup_parts: usize,
    products: Buffer,
    /// Working memory for two rows: the gradient of one table row from the lookups, and that from the head.
    rows: Buffer,
}

impl TableGradient {
    pub(crate) fn new(vocab_size: usize, width: usize) -> Self {
        Self { vocab_size, width, ..Self::default() }
    }

    pub(crate) fn clear(&mut self) {
        self.n_heads = 0;
        self.n_lookup_parts = 0;
        self.lookups.clear();
    }

    /// Returns true if this step has a gradient.
    pub(crate) fn is_written(&self) -> bool {
        self.n_heads + self.n_lookup_parts > 0
    }

    /// Starts a micro-batch with `n` masked rows. Returns its factors for the whole vocabulary, to be filled in. Then
    /// [`Self::finish_head`] must be called. `trained` are the trained rows of the table.
    pub(crate) fn start_head(
        &mut self,
        n: usize,
        trained: &Range<usize>,
    ) -> Result<&mut HeadFactors, Error> {
        self.first_row = trained.start;
        if self.heads.len() == self.n_heads {
            self.heads.push(HeadFactors::default());
        }
        let part =
            if self.first_row == 0 { &mut self.heads[self.n_heads] } else { &mut self.whole };
        part.reserve(n, self.vocab_size, self.width)?;
        Ok(part)
    }

    /// Adds the micro-batch of [`Self::start_head`] to the gradient. Only the factors of trained rows are kept.
    pub(crate) fn finish_head(&mut self) -> Result<(), Error> {
        if self.first_row == self.vocab_size {
            return Ok(());
        }
        if self.first_row > 0 {
            let part = &mut self.heads[self.n_heads];
            part.copy_rows(&self.whole, self.first_row, self.vocab_size, self.width)?;
        }
        self.n_heads += 1;
        Ok(())
    }

    /// Adds the gradients `d` of the embeddings that were looked up for `pieces`, as far as their rows are trained.
    /// The padding piece gets no gradient, as in torch.
    pub(crate) fn add_lookups(
        &mut self,
        pieces: &[u32],
        d: &[f32],
        pad_id: u32,
        trained: &Range<usize>,
    ) -> Result<(), Error> {
        self.first_row = trained.start;
        let (part, width) = (self.n_lookup_parts, self.width);
        if self.lookup_rows.len() == part {
            self.lookup_rows.push(Buffer::default());
        }
        let rows = &mut self.lookup_rows[part];
        let is_kept = |piece: u32| piece != pad_id && trained.contains(&(piece as usize));
        rows.try_reserve(pieces.iter().filter(|piece| is_kept(**piece)).count() * width)?;
        self.n_lookup_parts += 1;
        let found = pieces.iter().zip(d.chunks_exact(width)).filter(|(piece, _)| is_kept(**piece));
        for (row, (piece, d)) in found.enumerate() {
            rows[row * width..(row + 1) * width].copy_from_slice(d);
            self.lookups.push(Lookup { piece: *piece, part, row });
        }
        self.lookups.sort_unstable();
        Ok(())
    }

    /// Packs the matrices that [`Self::rows_into`] reads. Must be called after the last micro-batch.
    pub(crate) fn prepare(&mut self, isa: Isa) {
        let (width, columns) = (self.width, extent(isa).columns);
        for part in &mut self.heads[..self.n_heads] {
            part.panels.reserve(part.n * width);
            for start in (0..width).step_by(columns) {
                let breadth = columns.min(width - start);
                let panel = &mut part.panels[start * part.n..(start + breadth) * part.n];
                pack_rows(isa, &part.states[start..], width, breadth, panel);
            }
        }
    }

    /// Writes the gradient of some trained rows of the table, `[rows, hidden]`, to `out`. While it computes, it prefetches
    /// `ahead`, the arrays that the optimiser reads next.
    pub(crate) fn rows_into(
        &self,
        isa: Isa,
        rows: Range<usize>,
        out: &mut [f32],
        ahead: [&[f32]; N_STREAMS],
    ) {
        let (width, columns) = (self.width, extent(isa).columns);
        let n_shares = width.div_ceil(columns).div_ceil(N_STREAMS);
        if self.n_heads == 0 {
            out.fill(0.0);
        }
        for (index, part) in self.heads[..self.n_heads].iter().enumerate() {
            let errors = &part.errors[(rows.start - self.first_row) * part.stride..];
            let errors = Left::rows(errors, part.stride);
            for (turn, start) in (0..width).step_by(columns).enumerate() {
                let n = columns.min(width - start);
                let panel = Right::rows(&part.panels[start * part.n..], n);
                let out = Out { data: &mut out[start..], row: width, accumulates: index > 0 };
                let shape = Shape { m: rows.len(), k: part.n, n };
                let stream = ahead[turn % N_STREAMS];
                let next = match index {
                    0 => &stream[cut(stream.len(), n_shares, turn / N_STREAMS)],
                    _ => &[],
                };
                small_product_ahead(isa, shape, errors, panel, out, next);
            }
        }
        let first = self.lookups.partition_point(|l| (l.piece as usize) < rows.start);
        for lookup in self.lookups[first..].iter().take_while(|l| (l.piece as usize) < rows.end) {
            let at = (lookup.piece as usize - rows.start) * width;
            add(isa, &mut out[at..at + width], self.lookup_row(*lookup));
        }
    }

    fn lookup_row(&self, lookup: Lookup) -> &[f32] {
        &self.lookup_rows[lookup.part][lookup.row * self.width..][..self.width]
    }

    /// Returns the squared norm of the dense gradient.
    pub(crate) fn squared_norm(&mut self, cpu: &Cpu) -> f64 {
        let mut products = std::mem::take(&mut self.products);
        let mut total = 0.0;
        for first in 0..self.n_heads {
            for second in first..self.n_heads {
                total += self.inner_product(cpu, first, second, &mut products);
            }
        }
        self.products = products;
        let mut rows = std::mem::take(&mut self.rows);
        rows.reserve(2 * self.width);
        let (sum, head) = rows[..2 * self.width].split_at_mut(self.width);
        total += self.lookup_norm(cpu.isa(), sum, head);
        self.rows = rows;
        total
    }

    #[expect(clippy::many_single_char_names, reason = "the letters of matrix algebra")]
    /// Returns the dot product of the gradients of two micro-batches, doubled if they are different micro-batches.
    fn inner_product(&self, cpu: &Cpu, first: usize, second: usize, products: &mut Buffer) -> f64 {
        let (a, b) = (&self.heads[first], &self.heads[second]);
        let is_symmetric = first == second;
        let size = a.n * b.n;
        products.reserve(N_GROUPS * size);
        let groups = &mut products[..N_GROUPS * size];
        groups.fill(0.0);
        let columns = extent(cpu.isa()).columns;
        cpu.each(N_GROUPS, Split::every(groups, size), |task, _, out| {
            let group = cut(self.vocab_size - self.first_row, N_GROUPS, task);
            for start in group.clone().step_by(RUN) {
                let k = RUN.min(group.end - start);
                let left = Left::columns(&a.errors[start * a.stride..], a.stride);
                let next = &b.errors[(start + k) * b.stride..];
                let next = &next[..next.len().min(k * b.stride)];
                for (turn, column) in (0..b.n).step_by(columns).enumerate() {
                    let n = columns.min(b.n - column);
                    // The matrix is symmetric, so the half below the diagonal is not computed.
                    let m = if is_symmetric { a.n.min(column + n) } else { a.n };
                    let right = Right::rows(&b.errors[start * b.stride + column..], b.stride);
                    let out = Out { data: &mut out[column..], row: b.n, accumulates: true };
                    let ahead = &next[cut(next.len(), b.n.div_ceil(columns), turn)];
                    small_product_ahead(cpu.isa(), Shape { m, k, n }, left, right, out, ahead);
                }
            }
        });
        let mut total = 0.0;
        for i in 0..a.n {
            for j in if is_symmetric { i } else { 0 }..b.n {
                let errors: f64 =
                    (0..N_GROUPS).map(|g| f64::from(groups[g * size + i * b.n + j])).sum();
                let states = dot(cpu.isa(), self.state(a, i), self.state(b, j));
                let count = if is_symmetric && i == j { 1.0 } else { 2.0 };
                total += count * errors * f64::from(states);
            }
        }
        total
    }

    fn state<'a>(&self, part: &'a HeadFactors, row: usize) -> &'a [f32] {
        &part.states[row * self.width..(row + 1) * self.width]
    }

    /// Returns the part of the squared norm that comes from the lookups: the squared norm of their rows, plus twice the
    /// dot product of these rows with the rows from the head. `sum` and `head` are working memory of one row each.
    fn lookup_norm(&self, isa: Isa, sum: &mut [f32], head: &mut [f32]) -> f64 {
        let mut total = 0.0;
        for group in self.lookups.chunk_by(|a, b| a.piece == b.piece) {
            sum.fill(0.0);
            for lookup in group {
                add(isa, sum, self.lookup_row(*lookup));
            }
            total += f64::from(dot(isa, sum, sum));
            head.fill(0.0);
            for part in &self.heads[..self.n_heads] {
                let row = group[0].piece as usize - self.first_row;
                let errors = &part.errors[row * part.stride..][..part.n];
                let shape = Shape { m: 1, k: part.n, n: self.width };
                let factors = (Left::rows(errors, part.n), Right::rows(&part.states, self.width));
                let out = Out { data: &mut *head, row: self.width, accumulates: true };
                small_product(isa, shape, factors.0, factors.1, out);
            }
            total += 2.0 * f64::from(dot(isa, sum, head));
        }
        total
    }

    /// Returns the dense gradient, summed in f64, with zeros in frozen rows: for tests.
    pub(crate) fn to_dense(&self) -> Vec<f32> {
        let mut sums = vec![0.0_f64; self.vocab_size * self.width];
        for part in &self.heads[..self.n_heads] {
            let trained = sums[self.first_row * self.width..].chunks_exact_mut(self.width);
            for (v, sums) in trained.enumerate() {
                for (row, error) in part.errors[v * part.stride..][..part.n].iter().enumerate() {
                    for (sum, z) in sums.iter_mut().zip(self.state(part, row)) {
                        *sum += f64::from(*error) * f64::from(*z);
                    }
                }
            }
        }
        for lookup in &self.lookups {
            let at = lookup.piece as usize * self.width;
            for (sum, d) in sums[at..].iter_mut().zip(self.lookup_row(*lookup)) {
                *sum += f64::from(*d);
            }
        }
        #[expect(clippy::cast_possible_truncation, reason = "the precision of the engine")]
        sums.into_iter().map(|sum| sum as f32).collect()
    }
}
