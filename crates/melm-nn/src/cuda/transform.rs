//! The part of a head before its output layer: a dense layer, gelu and a layer norm, at some rows of the batch.

use super::backward::{GradientSink, NormGradient};
use super::kernels::{Grid, KernelDropout, launch};
use super::memory::Arena;
use super::pass::Pass;
use super::program::{ROWS_PER_SUM, norm_rows};
use super::span::{FloatSpan, Span};
use super::sums::PartialSums;
use super::tape::{NormTape, Tape};
use super::to_u32;
use crate::error::Error;
use crate::transform::HeadTransform;

/// The buffers of a head's transform. Buffers whose name starts with `d_` are gradients.
pub(super) struct TransformTape {
    gathered: FloatSpan,
    dense: Span<f32>,
    activated: Span<f32>,
    norm: NormTape,
    /// The gradient of the transform's output.
    pub(super) d_states: Span<f32>,
    d_dense: FloatSpan,
    d_gathered: Span<f32>,
}

impl TransformTape {
    /// Lays out the buffers for `n` rows of `width` columns. Without training, the buffers of the backward pass are
    /// empty.
    pub(super) fn lay_out(arena: &mut Arena, n: usize, width: usize, is_training: bool) -> Self {
        let n_backward = if is_training { n } else { 0 };
        Self {
            gathered: arena.operand(n * width),
            dense: arena.span(n * width),
            activated: arena.span(n * width),
            norm: NormTape::lay_out(arena, n, width),
            d_states: arena.span(n_backward * width),
            d_dense: arena.operand(n_backward * width),
            d_gathered: arena.span(n_backward * width),
        }
    }

    /// Returns the length of the buffer for the partial sums that the backward pass writes.
    pub(super) fn n_partials(n: usize, width: usize) -> usize {
        PartialSums::n_taken(n.div_ceil(norm_rows(width)), 3 * width)
            + PartialSums::n_taken(n.div_ceil(ROWS_PER_SUM), width)
    }

    /// Returns the output in the type that products read.
    pub(super) fn states(&self) -> FloatSpan {
        self.norm.operand
    }

    /// Returns the output in f32.
    pub(super) fn states_f32(&self) -> Span<f32> {
        self.norm.normed.y
    }
}

impl Pass<'_> {
    /// Computes the transform of the hidden states at `rows`.
    pub(super) fn transform_forward(
        &self,
        transform: &HeadTransform,
        hidden: FloatSpan,
        rows: Span<u32>,
        tape: &TransformTape,
    ) -> Result<(), Error> {
        launch!(
            self.kernels,
            Gather,
            Grid::linear(rows.len(), 128),
            hidden.argument(),
            rows,
            tape.gathered.argument(),
            to_u32(self.config().hidden_size),
        );
        let (none, bias) = (Span::default(), self.weights.master(&transform.dense.bias));
        self.linear(tape.gathered, &transform.dense, tape.dense, bias)?;
        self.gelu(&transform.dense, tape.dense, Span::default(), tape.activated)?;
        let (dropout, out) = (KernelDropout::NONE, tape.norm.normed);
        self.norm(tape.activated, none, none, &transform.norm, dropout, out)
    }

    /// Computes the gradient of the encoder's hidden states (in `encoder.d_hidden`) from the gradient of the
    /// transform's output.
    pub(super) fn transform_backward(
        &self,
        transform: &HeadTransform,
        rows: Span<u32>,
        encoder: &Tape,
        tape: &TransformTape,
        sink: &mut GradientSink<'_>,
    ) -> Result<(), Error> {
        let norm = NormGradient {
            params: &transform.norm,
            normed: tape.norm.normed,
            dropout: KernelDropout::NONE,
            d: tape.d_states,
            dx: FloatSpan::default(),
            bias: None,
        };
        self.norm_backward(&norm, sink)?;
        self.gelu_backward(&transform.dense, tape.dense, tape.d_states, tape.d_dense, sink)?;
        self.weight_gradient(tape.d_dense, tape.gathered, &transform.dense, sink)?;
        self.linear_backward(tape.d_dense, &transform.dense, tape.d_gathered, false)?;
        self.scatter(tape.d_gathered, rows, KernelDropout::NONE, encoder)
    }

    /// Writes the given gradients to their rows of `tape.d_hidden`, and zeros to the other rows.
    pub(super) fn scatter(
        &self,
        d: Span<f32>,
        rows: Span<u32>,
        dropout: KernelDropout,
        tape: &Tape,
    ) -> Result<(), Error> {
        let (width, positions) = (to_u32(self.config().hidden_size), self.inputs.row_positions);
        self.kernels.clear(tape.d_hidden)?;
        let grid = Grid::linear(rows.len(), 128);
        launch!(self.kernels, Scatter, grid, d, rows, dropout, positions, tape.d_hidden, width);
        Ok(())
    }
}
