//! The operations of a layer, each with its backward pass.

pub(crate) mod attention;
pub(crate) mod cross_entropy;
pub(crate) mod embedding;
pub(crate) mod gated;
pub(crate) mod gelu;
pub(crate) mod linear;
pub(crate) mod norm;
pub(crate) mod rotary;

use crate::buffer::Buffer;
use crate::device::Cpu;
use crate::dropout::{Dropout, RowMask, Site};
use crate::isa::{Isa, per_isa};
use crate::split::Split;
use linear::Accumulator;

/// The number of rows of one task in loops over rows. It also determines the order in which columns are summed.
pub(crate) const ROWS_PER_TASK: usize = 16;

per_isa! {
    /// Adds `row` to `out`, element by element.
    pub(crate) fn add(out: &mut [f32], row: &[f32]) {
        for (out, x) in out.iter_mut().zip(row) {
            *out += x;
        }
    }
}

per_isa! {
    /// Returns the dot product of two rows.
    pub(crate) fn dot(x: &[f32], y: &[f32]) -> f32 {
        crate::math::sum_of(x, y, |x, y| x * y)
    }
}

/// The dropout of the rows of a batch.
#[derive(Clone, Copy)]
pub(crate) struct RowDropout<'a> {
    pub(crate) dropout: Dropout,
    /// For each row, the key of its sentence and its position in the sentence.
    pub(crate) places: &'a [(u64, usize)],
}

impl RowDropout<'_> {
    /// Returns the dropout mask of one row at a site of a layer.
    pub(crate) fn mask(&self, layer: usize, site: Site, row: usize) -> RowMask {
        let (sentence, position) = self.places[row];
        self.dropout.row(layer, site, sentence, position)
    }

    /// Applies dropout to rows of `width` numbers. This also works for their gradients, because dropout is linear.
    pub(crate) fn drop_rows(
        &self,
        isa: Isa,
        layer: usize,
        site: Site,
        rows: &mut [f32],
        width: usize,
    ) {
        for (row, (sentence, position)) in rows.chunks_exact_mut(width).zip(self.places) {
            let mask = self.dropout.row(layer, site, *sentence, *position);
            norm::drop_row(isa, mask, row);
        }
    }
}

/// Sums of the columns of a matrix, in two stages: each task sums its rows, then the partial sums are added in the
/// order of the tasks.
#[derive(Default)]
pub(crate) struct ColumnSums {
    /// The sums of each task, `[tasks, width]`.
    partial: Buffer,
    n_tasks: usize,
    width: usize,
}

impl ColumnSums {
    /// Sets the partial sums of `n_tasks` tasks and `width` columns to zero and returns them.
    pub(crate) fn start(&mut self, n_tasks: usize, width: usize) -> &mut [f32] {
        self.n_tasks = n_tasks;
        self.width = width;
        self.partial.reserve(n_tasks * width);
        let partial = &mut self.partial[..n_tasks * width];
        partial.fill(0.0);
        partial
    }

    /// Computes the partial sums of `data`, whose rows have `width` numbers.
    pub(crate) fn sum_rows(&mut self, cpu: &Cpu, data: &[f32], width: usize) {
        let block = width * ROWS_PER_TASK;
        let n_tasks = data.len().div_ceil(block);
        let parts = Split::every(self.start(n_tasks, width), width);
        cpu.each(n_tasks, parts, |task, _, sum| {
            let end = data.len().min((task + 1) * block);
            for row in data[task * block..end].chunks_exact(width) {
                add(cpu.isa(), sum, row);
            }
        });
    }

    /// Adds up the partial sums of the columns that start at `first_column`, as many as `out` has, and writes them to
    /// `out`.
    pub(crate) fn finish_into(&self, cpu: &Cpu, first_column: usize, out: Accumulator<'_>) {
        let Accumulator { data, accumulates } = out;
        if !accumulates {
            data.fill(0.0);
        }
        let columns = first_column..first_column + data.len();
        let partial = &self.partial[..self.n_tasks * self.width];
        for sums in partial.chunks_exact(self.width) {
            add(cpu.isa(), data, &sums[columns.clone()]);
        }
    }
}
