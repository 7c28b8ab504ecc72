//! Gradient clipping: computes the norm of all gradients, including the embedding table's, and the clipping factor.

use super::adam::{AdamStep, LookupsByPiece, NORM_BLOCKS};
use super::gradients::GpuGradients;
use super::kernels::{Grid, launch};
use super::product::{Operand, Product, ProductSize};
use super::span::Span;
use super::{SPLITS, to_u32};
use crate::error::Error;

impl AdamStep<'_> {
    /// Computes the norm of all gradients and the clipping factor, by which [`Self::update`] multiplies them.
    /// A norm that is not finite marks `step` as failed, and nothing is updated.
    pub(super) fn clip(
        &mut self,
        max_norm: f32,
        step: u32,
        lookups: &LookupsByPiece,
    ) -> Result<(), Error> {
        let n_pieces = lookups.pieces.len();
        let norms = self.moments.norms.span::<f64>();
        let values = self.gradients.values.span::<f32>();
        // The first element of `norms` is the norm itself. Partial sums of squares follow.
        let mut used = 1;
        let mut take = |n: usize| {
            used += n;
            norms.slice(used - n..used)
        };
        for range in &self.ranges {
            let (gradient, out) = (values.slice(range.clone()), take(NORM_BLOCKS));
            launch!(self.kernels, SquareSums, Grid::linear(NORM_BLOCKS, 256), gradient, out);
        }
        if self.trains_table {
            let mut head = Span::default();
            if self.gradients.n_states > 0 {
                self.compute_head_norm(take(NORM_BLOCKS))?;
                if n_pieces > 0 {
                    head = self.compute_lookup_rows(lookups)?;
                }
            }
            let (grid, out) = (Grid::linear(n_pieces, 256), take(n_pieces));
            launch!(self.kernels, LookupNorm, grid, lookups.lists, head, out);
        }
        let (parts, norm) = (norms.slice(1..used), norms.slice(0..1));
        let (clip, failed, grid) =
            (self.moments.clip(), self.moments.failed(), Grid::linear(1, 256));
        launch!(self.kernels, FinishNorm, grid, parts, max_norm, norm, clip, step, failed);
        Ok(())
    }

    /// Computes the rows of `errors^T states`, the masked-LM head's part of the table's gradient, of the looked-up pieces.
    /// Rows of padding follow.
    fn compute_lookup_rows(&self, lookups: &LookupsByPiece) -> Result<Span<f32>, Error> {
        let GpuGradients { width, n_states: n, stride, .. } = *self.gradients;
        let factors = self.gradients.factors();
        let n_rows = lookups.n_padded();
        let picked = self.moments.picked.floats(factors.errors.element_size).slice(0..n_rows * n);
        launch!(
            self.kernels,
            PickColumns,
            Grid::linear(lookups.pieces.len(), 128),
            lookups.lists,
            factors.errors.argument(),
            to_u32(n),
            to_u32(stride),
            to_u32(self.gradients.trained.start),
            picked.argument(),
        );
        let rows = self.moments.lookup_rows.span::<f32>().first(n_rows * width);
        let size = ProductSize { m: n_rows, n: width, k: n };
        let (errors, states) = (Operand::new(picked, n), Operand::new(factors.states, width));
        self.kernels.product(&Product::new(size, errors, states, rows))?;
        Ok(rows)
    }

    /// Computes the squared norm of `errors^T states`, the masked-LM head's part of the table's gradient. This norm is
    /// the inner product of the Gram matrices of errors and states, so that the gradient itself need not be computed.
    fn compute_head_norm(&mut self, out: Span<f64>) -> Result<(), Error> {
        let GpuGradients { width, n_states: n, stride, .. } = *self.gradients;
        let factors = self.gradients.factors();
        let grams = self.moments.grams.span::<f32>();
        let (of_states, of_errors) = (grams.first(n * n), grams.slice(n * n..(SPLITS + 1) * n * n));
        let gram = |rows: Operand, k: usize, out: Span<f32>| {
            Product::new(ProductSize { m: n, n, k }, rows, rows.transposed(), out)
        };
        let states = Operand::new(factors.states, width);
        self.kernels.product(&gram(states, width, of_states).batched(1))?;
        let k = stride / SPLITS;
        let errors = Operand::new(factors.errors, stride).with_batch_stride(k);
        self.kernels.product(&gram(errors, k, of_errors).batched(SPLITS))?;
        let (grid, parts) = (Grid::linear(NORM_BLOCKS, 256), to_u32(SPLITS));
        launch!(self.kernels, GramDot, grid, of_errors, of_states, parts, out);
        Ok(())
    }
}
