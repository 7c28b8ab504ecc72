//! Sums over the rows of a batch.
//!
//! Thread blocks write partial sums. A final kernel adds up the partial sums in a fixed order, so that the result does
//! not depend on the order in which blocks run.

use super::kernels::{Grid, Kernels, launch};
use super::memory::{DeviceBuffer, StagingBuffer, ToBytes};
use super::program::{FINISH_COLUMNS, FINISH_THREADS};
use super::span::Span;
use super::to_u32;
use crate::error::Error;
use crate::gradients::Gradients;
use std::ops::Range;

/// The partial sums of a backward pass, and the gradients to which their totals are written.
pub(super) struct PartialSums {
    partial: Span<f32>,
    used: usize,
    list: Vec<Sum>,
}

/// One scheduled sum: adds up rows of partial sums into a gradient (`Sum` in `rows.cu`).
#[derive(Clone, Copy)]
struct Sum {
    partial: u64,
    out: u64,
    n_partials: u32,
    stride: u32,
    width: u32,
    accumulates: u32,
}

impl ToBytes for Sum {
    fn append(&self, bytes: &mut Vec<u8>) {
        for long in [self.partial, self.out] {
            long.append(bytes);
        }
        for short in [self.n_partials, self.stride, self.width, self.accumulates] {
            short.append(bytes);
        }
    }
}

/// Memory for rows of partial sums, which a kernel writes.
pub(super) struct PartialRows {
    pub(super) span: Span<f32>,
    start: usize,
    n_partials: usize,
    width: usize,
}

impl PartialRows {
    /// Returns some of the rows.
    pub(super) fn rows(&self, rows: Range<usize>) -> Self {
        let (start, end) = (rows.start * self.width, rows.end * self.width);
        Self {
            span: self.span.slice(start..end),
            start: self.start + start,
            n_partials: rows.len(),
            width: self.width,
        }
    }
}

/// Partial sums begin at multiples of this many numbers, so that kernels can write and read them as vectors.
const VECTOR: usize = 4;

impl PartialSums {
    /// Returns the length of the memory that [`Self::take`] uses for `n_partials` rows of `width` numbers.
    pub(super) fn n_taken(n_partials: usize, width: usize) -> usize {
        (n_partials * width).next_multiple_of(VECTOR)
    }

    /// Creates an empty list of sums. `partial` is the memory for the partial sums.
    pub(super) fn new(partial: Span<f32>) -> Self {
        Self { partial, used: 0, list: Vec::new() }
    }

    /// Returns memory for `n_partials` rows of `width` numbers, which a kernel writes and [`Self::reduce_into`] then
    /// takes.
    pub(super) fn take(&mut self, n_partials: usize, width: usize) -> PartialRows {
        let start = self.used;
        self.used += Self::n_taken(n_partials, width);
        let span = self.partial.slice(start..start + n_partials * width);
        PartialRows { span, start, n_partials, width }
    }

    /// Schedules a sum: [`Self::reduce`] will add up the columns from `first_column` on into the gradient of `range`.
    pub(super) fn reduce_into(
        &mut self,
        rows: &PartialRows,
        first_column: usize,
        range: &Range<usize>,
        gradients: &mut Gradients,
    ) {
        let accumulates = gradients.mark(range);
        self.list.push(Sum {
            partial: (rows.start + first_column) as u64,
            out: range.start as u64,
            n_partials: to_u32(rows.n_partials),
            stride: to_u32(rows.width),
            width: to_u32(range.len()),
            accumulates: u32::from(accumulates),
        });
    }

    /// Runs all scheduled sums and writes the totals to `gradient`. The list of sums is uploaded to `buffer`.
    pub(super) fn reduce(
        &self,
        kernels: &Kernels,
        buffer: &mut DeviceBuffer,
        gradient: Span<f32>,
    ) -> Result<(), Error> {
        let mut staging = StagingBuffer::default();
        let list = staging.push(self.list.iter().copied());
        staging.upload(buffer)?;
        let widest = self.list.iter().map(|sum| sum.width as usize).max().unwrap_or(0);
        let blocks = [widest.div_ceil(FINISH_COLUMNS), self.list.len(), 1];
        let grid = Grid::new(blocks, FINISH_THREADS);
        launch!(kernels, FinishSums, grid, buffer.staged(list), self.partial, gradient);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A tagger with three tags takes sums whose number is no multiple of four before those of the encoder.
    #[test]
    fn all_partial_sums_begin_at_multiples_of_vectors() {
        let sizes = [(5, 3), (1, 1), (2, 8), (3, 7)];
        let n_all = sizes.iter().map(|(n, width)| PartialSums::n_taken(*n, *width)).sum();
        let mut sums = PartialSums::new(Span::new(4096, n_all));
        for (n_partials, width) in sizes {
            let rows = sums.take(n_partials, width);
            assert_eq!((rows.start % VECTOR, rows.span.address % 16), (0, 0));
            assert_eq!(rows.span.len(), n_partials * width);
        }
    }
}
