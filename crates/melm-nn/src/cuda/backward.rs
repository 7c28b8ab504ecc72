//! The way back through the encoder, in the forward pass's order reversed.

use super::encode::{Heads, Pass};
use super::inputs::Task;
use super::kernels::{Argument, Drop, launch};
use super::machine::{Factor, Numbers, Product, Span};
use super::n32;
use super::program::ROWS_PER_SUM;
use super::sums::Sums;
use super::tape::{Normed, Tape};
use crate::dropout::Site;
use crate::encoder::LinearParams;
use crate::error::Error;
use crate::gradients::Gradients;
use crate::params::Parameters;

/// What a backward pass writes to.
pub(super) struct Back<'a> {
    pub(super) parameters: &'a Parameters,
    pub(super) gradients: &'a mut Gradients,
    pub(super) sums: &'a mut Sums,
}

/// What attention's way back reads; as `attention.cu` has it.
#[repr(C)]
#[derive(Clone, Copy)]
struct AttentionBackward {
    heads: Heads,
    tasks: Span<Task>,
    context: Span<f32>,
    log_sums: Span<f32>,
    d_context: Span<f32>,
}

impl Argument for AttentionBackward {}

impl Pass<'_> {
    /// From the gradient in `tape.d` to that of every parameter that is trained.
    pub(super) fn backward(
        &self,
        tape: &Tape,
        pieces: &[u32],
        back: &mut Back<'_>,
    ) -> Result<(), Error> {
        for index in (0..self.encoder.layers.len()).rev() {
            self.feed_forward_backward(tape, index, back)?;
            self.attention_backward(tape, index, back)?;
        }
        self.embedding_backward(tape, pieces, back)
    }

    fn feed_forward_backward(
        &self,
        tape: &Tape,
        index: usize,
        back: &mut Back<'_>,
    ) -> Result<(), Error> {
        let (hidden, inner) = (self.config().hidden_size, self.config().intermediate_size);
        let (place, own) = (&self.encoder.layers[index], &tape.layers[index]);
        let drop = Drop::at(&self.dropout, index, Site::Output);
        let bias = &place.output.bias;
        self.norm_backward(
            (&place.output_norm, own.output.normed),
            drop,
            (tape.d, tape.dx),
            (bias, back),
        )?;
        self.linear_backward(
            (self.n, tape.dx),
            (&place.output, inner, hidden),
            tape.d_inner,
            false,
        )?;
        self.weight_gradient(
            (self.n, tape.dx, own.activated),
            (&place.output, inner, hidden),
            back,
        )?;
        let intermediate = &place.intermediate;
        self.gelu_backward(
            (intermediate, inner),
            (self.n, own.inner, tape.d_inner),
            tape.du,
            back,
        )?;
        self.weight_gradient(
            (self.n, tape.du, own.attended.y),
            (intermediate, hidden, inner),
            back,
        )?;
        self.linear_backward((self.n, tape.du), (intermediate, hidden, inner), tape.d, true)
    }

    fn attention_backward(
        &self,
        tape: &Tape,
        index: usize,
        back: &mut Back<'_>,
    ) -> Result<(), Error> {
        let (n, hidden, n_heads) = (self.n, self.config().hidden_size, self.config().n_heads);
        let (place, own) = (&self.encoder.layers[index], &tape.layers[index]);
        let drop = Drop::at(&self.dropout, index, Site::AttentionOutput);
        let output = &place.attention_output;
        let normed = own.attended.normed;
        self.norm_backward(
            (&place.attention_norm, normed),
            drop,
            (tape.d, tape.dx),
            (&output.bias, back),
        )?;
        self.linear_backward((n, tape.dx), (output, hidden, hidden), tape.d_context, false)?;
        self.weight_gradient((n, tape.dx, own.context), (output, hidden, hidden), back)?;
        let reads = AttentionBackward {
            heads: self.heads(own, index),
            tasks: self.inputs.tasks,
            context: own.plain_context,
            log_sums: own.log_sums,
            d_context: tape.d_context,
        };
        // Queries, and beside them keys and values.
        let grid = [self.inputs.tasks.len(), n_heads, 2];
        let over = (grid, self.attention_threads());
        launch!(self.kernels, AttentionBackward, over, reads, tape.d_qkv.span());
        let partial = back.sums.take(n.div_ceil(ROWS_PER_SUM), 3 * hidden);
        let grid = [(3 * hidden).div_ceil(128), n.div_ceil(ROWS_PER_SUM), 1];
        let width = n32(3 * hidden);
        launch!(
            self.kernels,
            ColumnSums,
            (grid, 128),
            tape.d_qkv.span(),
            partial.span,
            width,
            n32(n)
        );
        back.sums.finish_into(&partial, 0, (&place.qkv.bias, back.gradients));
        let x = tape.after(index).y;
        self.weight_gradient((n, tape.d_qkv, x), (&place.qkv, hidden, 3 * hidden), back)?;
        self.linear_backward((n, tape.d_qkv), (&place.qkv, hidden, 3 * hidden), tape.d, true)
    }

    fn embedding_backward(
        &self,
        tape: &Tape,
        pieces: &[u32],
        back: &mut Back<'_>,
    ) -> Result<(), Error> {
        let (encoder, config, hidden) = (self.encoder, self.config(), self.config().hidden_size);
        let over = self.by_rows(self.n);
        let out = if back.parameters.trains(&encoder.table) {
            back.gradients.card_mut().next_lookups((pieces, self.n), config.pad_id)
        } else {
            tape.narrow
        };
        let partial = back.sums.take(over.0[0], 3 * hidden);
        let normed = tape.embedded.normed;
        launch!(
            self.kernels,
            EmbedBackward,
            over,
            self.weights.plain(&encoder.norm.weight),
            normed.rows,
            normed.scale,
            Drop::at(&self.dropout, 0, Site::Embedding),
            self.inputs.places,
            tape.d,
            out,
            partial.span,
            n32(self.n),
        );
        let first_kind = encoder.kinds.start..encoder.kinds.start + hidden;
        for place in [&encoder.kinds, &encoder.positions] {
            if !back.gradients.mark(place) {
                let span = back.gradients.card_mut().at(place);
                self.kernels.clear(span)?;
            }
        }
        let sums = &mut *back.sums;
        sums.finish_into(&partial, 0, (&encoder.norm.weight, back.gradients));
        sums.finish_into(&partial, hidden, (&encoder.norm.bias, back.gradients));
        sums.finish_into(&partial, 2 * hidden, (&first_kind, back.gradients));
        let positions = back.gradients.card_mut().at(&encoder.positions);
        launch!(
            self.kernels,
            PositionGradient,
            ([self.inputs.longest, 1, 1], 256),
            out,
            self.inputs.starts,
            n32(self.inputs.n_sentences),
            config.pad_id + 1,
            positions,
        );
        Ok(())
    }

    /// Back through [`Self::norm`]: `d` becomes the residual's gradient, `dx` that of `x` for products.
    pub(super) fn norm_backward(
        &self,
        (place, normed): (&LinearParams, Normed),
        drop: Drop,
        (d, dx): (Span<f32>, Numbers),
        (bias, back): (&std::ops::Range<usize>, &mut Back<'_>),
    ) -> Result<(), Error> {
        let hidden = self.config().hidden_size;
        let n = d.len() / hidden;
        let over = self.by_rows(n);
        let partial = back.sums.take(over.0[0], 3 * hidden);
        launch!(
            self.kernels,
            NormBackward,
            over,
            self.weights.plain(&place.weight),
            normed.rows,
            normed.scale,
            drop,
            self.inputs.places,
            d,
            dx.span(),
            partial.span,
            n32(n),
        );
        back.sums.finish_into(&partial, 0, (&place.weight, back.gradients));
        back.sums.finish_into(&partial, hidden, (&place.bias, back.gradients));
        if !bias.is_empty() {
            back.sums.finish_into(&partial, 2 * hidden, (bias, back.gradients));
        }
        Ok(())
    }

    /// From the gradient of `gelu(u)` in `d` to that of `u`, for products.
    pub(super) fn gelu_backward(
        &self,
        (place, width): (&LinearParams, usize),
        (n, u, d): (usize, Span<f32>, Span<f32>),
        du: Numbers,
        back: &mut Back<'_>,
    ) -> Result<(), Error> {
        let n_sums = n.div_ceil(ROWS_PER_SUM);
        let partial = back.sums.take(n_sums, width);
        let grid = [width.div_ceil(128), n_sums, 1];
        let span = partial.span;
        launch!(self.kernels, GeluBackward, (grid, 128), u, d, du.span(), span, n32(width), n32(n));
        back.sums.finish_into(&partial, 0, (&place.bias, back.gradients));
        Ok(())
    }

    /// `dx (+)= dy W`.
    pub(super) fn linear_backward(
        &self,
        (n, dy): (usize, Numbers),
        (place, inputs, outputs): (&LinearParams, usize, usize),
        dx: Span<f32>,
        accumulates: bool,
    ) -> Result<(), Error> {
        self.kernels.product(&Product {
            m: n,
            n: inputs,
            k: outputs,
            a: Factor::of(dy, outputs),
            b: Factor::of(self.weights.product(&place.weight), inputs),
            out: dx,
            out_row: inputs,
            out_batch: 0,
            accumulates,
            bias: Span::default(),
            n_batches: 1,
        })
    }

    /// `dW (+)= dy^T x`, unless the weight is frozen.
    pub(super) fn weight_gradient(
        &self,
        (n, dy, x): (usize, Numbers, Numbers),
        (place, inputs, outputs): (&LinearParams, usize, usize),
        back: &mut Back<'_>,
    ) -> Result<(), Error> {
        if !back.parameters.trains(&place.weight) {
            return Ok(());
        }
        let accumulates = back.gradients.mark(&place.weight);
        let out = back.gradients.card_mut().at(&place.weight);
        self.kernels.product(&Product {
            m: outputs,
            n: inputs,
            k: n,
            a: Factor::of(dy, outputs).transposed(),
            b: Factor::of(x, inputs),
            out,
            out_row: inputs,
            out_batch: 0,
            accumulates,
            bias: Span::default(),
            n_batches: 1,
        })
    }
}
