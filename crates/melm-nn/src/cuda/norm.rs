//! The norm of all gradients, the table's included, and what clipping leaves of them.

use super::adam::{ByPiece, NORM_BLOCKS, Step};
use super::kernels::launch;
use super::machine::{Factor, Product, Span};
use super::{SPLITS, n32};
use crate::error::Error;

impl Step<'_> {
    /// The norm of all gradients; what clipping leaves is put where [`Self::update`] reads it.
    pub(super) fn clip(&mut self, most: f32, lookups: &ByPiece) -> Result<(), Error> {
        let n_pieces = lookups.pieces.len();
        let norms = self.moments.norms.span::<f64>();
        let values = self.card.values.span::<f32>();
        let mut used = 1;
        let mut take = |n: usize| {
            used += n;
            norms.part(used - n..used)
        };
        for range in &self.ranges {
            let (gradient, out) = (values.part(range.clone()), take(NORM_BLOCKS));
            launch!(self.kernels, SquareSums, ([NORM_BLOCKS, 1, 1], 256), gradient, out);
        }
        if self.trains_table {
            let (stride, n) = (self.weights.n_rows, self.card.n_states);
            if n > 0 {
                self.grams(take(NORM_BLOCKS))?;
            }
            let (errors, states) = self.card.factors(stride);
            let (over, out) = (([n_pieces, 1, 1], 256), take(n_pieces));
            let (errors, states) = (errors.span(), states.span());
            let card = lookups.card;
            launch!(self.kernels, LookupNorm, over, card, errors, states, n32(n), n32(stride), out);
        }
        let (parts, norm) = (norms.part(1..used), norms.part(0..1));
        let clip = self.moments.clip.span::<f32>().first(1);
        launch!(self.kernels, FinishNorm, ([1, 1, 1], 256), parts, most, norm, clip);
        Ok(())
    }

    /// The squared norm of the head's part of the table's gradient, from two small matrices.
    fn grams(&mut self, out: Span<f64>) -> Result<(), Error> {
        let (stride, width, n) = (self.weights.n_rows, self.card.width, self.card.n_states);
        let (errors, states) = self.card.factors(stride);
        let grams = self.moments.grams.span::<f32>();
        let (of_states, of_errors) = (grams.first(n * n), grams.part(n * n..(SPLITS + 1) * n * n));
        let k = stride / SPLITS;
        let product = |factor: Factor, k: usize, out: Span<f32>, n_batches: usize| Product {
            m: n,
            n,
            k,
            a: factor,
            b: factor.transposed(),
            out,
            out_row: n,
            out_batch: n * n,
            accumulates: false,
            bias: Span::default(),
            n_batches,
        };
        self.kernels.product(&product(Factor::of(states, width), width, of_states, 1))?;
        let errors = Factor::of(errors, stride).every(k);
        self.kernels.product(&product(errors, k, of_errors, SPLITS))?;
        let (over, parts) = (([NORM_BLOCKS, 1, 1], 256), n32(SPLITS));
        launch!(self.kernels, GramDot, over, of_errors, of_states, parts, out);
        Ok(())
    }
}
