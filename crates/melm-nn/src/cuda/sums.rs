//! Sums over rows, which blocks begin and one last kernel finishes: in one order, whatever the order of the blocks.

use super::kernels::{Kernels, launch};
use super::machine::Span;
use super::memory::{Block, Parcel, Plain};
use crate::error::Error;
use crate::gradients::Gradients;
use std::ops::Range;

/// The unfinished sums of a backward pass.
pub(super) struct Sums {
    partial: Span<f32>,
    used: usize,
    list: Vec<Sum>,
}

/// As `rows.cu` has it.
#[derive(Clone, Copy)]
pub(super) struct Sum {
    partial: u64,
    out: u64,
    n_partials: u32,
    stride: u32,
    width: u32,
    accumulates: u32,
}

impl Plain for Sum {
    fn put(&self, bytes: &mut Vec<u8>) {
        for long in [self.partial, self.out] {
            long.put(bytes);
        }
        for short in [self.n_partials, self.stride, self.width, self.accumulates] {
            short.put(bytes);
        }
    }
}

impl Sums {
    pub(super) fn over(partial: Span<f32>) -> Self {
        Self { partial, used: 0, list: Vec::new() }
    }

    /// Room for `n_partials` rows of `width`, for a kernel to fill. Hand it to [`Self::finish_into`].
    pub(super) fn take(&mut self, n_partials: usize, width: usize) -> Unfinished {
        let start = self.used;
        self.used += n_partials * width;
        let span = self.partial.part(start..self.used);
        Unfinished { span, start, n_partials, width }
    }

    /// Has columns of partial sums, from column `from` on, added up into the gradient of `range`.
    pub(super) fn finish_into(
        &mut self,
        unfinished: &Unfinished,
        from: usize,
        (range, gradients): (&Range<usize>, &mut Gradients),
    ) {
        let accumulates = gradients.mark(range);
        self.list.push(Sum {
            partial: (unfinished.start + from) as u64,
            out: range.start as u64,
            n_partials: super::n32(unfinished.n_partials),
            stride: super::n32(unfinished.width),
            width: super::n32(range.len()),
            accumulates: u32::from(accumulates),
        });
    }

    /// Finishes them all.
    pub(super) fn finish(
        &self,
        kernels: &Kernels,
        block: &mut Block,
        gradient: Span<f32>,
    ) -> Result<(), Error> {
        let mut parcel = Parcel::default();
        let list = parcel.put(self.list.iter().copied());
        parcel.send(block)?;
        let list = Parcel::placed(list, block);
        let widest = self.list.iter().map(|sum| sum.width as usize).max().unwrap_or(0);
        let grid = [widest.div_ceil(128), self.list.len(), 1];
        launch!(kernels, FinishSums, (grid, 128), list, self.partial, gradient);
        Ok(())
    }
}

/// Partial sums that a kernel fills.
pub(super) struct Unfinished {
    pub(super) span: Span<f32>,
    start: usize,
    n_partials: usize,
    width: usize,
}
