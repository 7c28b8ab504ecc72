//! The buffers of a pass through the encoder: activations for the backward pass, and scratch buffers.

use super::attention::AttentionQuery;
use super::dropout_bits::DropoutBits;
use super::kernels::Argument;
use super::memory::Arena;
use super::program::{ROWS_PER_SUM, norm_rows};
use super::span::{FloatSpan, Span};
use super::sums::PartialSums;
use super::weights::GpuWeights;
use crate::architecture::{FeedForward, Residual};
use crate::config::Config;
use crate::encoder::LinearParams;

/// The output of a layer norm and the values that its backward pass needs (`Normed` in `norm.cu`).
#[repr(C)]
#[derive(Clone, Copy, Default)]
pub(super) struct Normed {
    /// The normalised rows (mean 0, variance 1), before scale and shift.
    pub(super) rows: Span<f32>,
    /// The reciprocal of the standard deviation of each row.
    pub(super) scale: Span<f32>,
    pub(super) y: Span<f32>,
    /// `y` in the type that products read.
    pub(super) y_product: Span<u16>,
}

impl Argument for Normed {}

/// The scale and the shift of a layer norm (`Affine` in `norm.cu`).
#[repr(C)]
#[derive(Clone, Copy)]
pub(super) struct Affine {
    weight: Span<f32>,
    bias: Span<f32>,
    eps: f32,
    unused: u32,
}

impl Argument for Affine {}

impl Affine {
    pub(super) fn new(weights: &GpuWeights, params: &LinearParams, eps: f32) -> Self {
        let (weight, bias) = (weights.master(&params.weight), weights.master(&params.bias));
        Self { weight, bias, eps, unused: 0 }
    }
}

/// The buffers of a layer norm: its output in f32, and in the type that products read.
#[derive(Clone, Copy, Default)]
pub(super) struct NormTape {
    pub(super) normed: Normed,
    pub(super) operand: FloatSpan,
}

impl NormTape {
    pub(super) fn lay_out(arena: &mut Arena, n_rows: usize, width: usize) -> Self {
        let operand = arena.operand(n_rows * width);
        let normed = Normed {
            rows: arena.span(n_rows * width),
            scale: arena.span(n_rows),
            y: arena.span(n_rows * width),
            y_product: operand.argument(),
        };
        Self { normed, operand }
    }
}

/// The activations of one layer.
#[derive(Clone, Copy)]
pub(super) struct LayerTape {
    pub(super) qkv: Span<f32>,
    pub(super) context: FloatSpan,
    /// `context` in f32; empty if there is no backward pass.
    pub(super) context_f32: Span<f32>,
    /// The logarithm of the softmax denominator, for each row and attention head.
    pub(super) log_sums: Span<f32>,
    pub(super) attended: NormTape,
    /// The inner layer of the feed-forward block, before gelu. In a gated layer, each row has the input and the gate.
    pub(super) inner: Span<f32>,
    /// The inner layer of the feed-forward block, after gelu and gate.
    pub(super) activated: FloatSpan,
    pub(super) output: NormTape,
    pub(super) gradients: LayerGradients,
}

/// The gradients from which those of the weights of a layer are computed, in the type that products read; empty if there
/// is no backward pass.
#[derive(Clone, Copy)]
pub(super) struct LayerGradients {
    pub(super) qkv: FloatSpan,
    /// The gradient of the output of attention, after its linear layer.
    pub(super) attention_output: FloatSpan,
    /// The gradient of the inner layer before gelu.
    pub(super) inner: FloatSpan,
    /// The gradient of the output of the feed-forward block, after its linear layer.
    pub(super) output: FloatSpan,
}

impl LayerGradients {
    fn lay_out(arena: &mut Arena, config: &Config, n_rows: usize) -> Self {
        let hidden = config.hidden_size;
        Self {
            qkv: arena.operand(n_rows * 3 * hidden),
            attention_output: arena.operand(n_rows * hidden),
            inner: arena.operand(n_rows * config.intermediate_outputs()),
            output: arena.operand(n_rows * hidden),
        }
    }
}

/// The buffers of one batch. Buffers whose name starts with `d_` are gradients.
pub(super) struct Tape {
    /// The bits of dropout of attention; empty until [`DropoutBits::lay_out_training`].
    pub(super) dropout_bits: DropoutBits,
    pub(super) embedded: NormTape,
    pub(super) layers: Vec<LayerTape>,
    /// The output of a linear layer, `[rows, hidden]`, before the layer norm that follows it.
    pub(super) projected: Span<f32>,
    /// The gradient of the hidden states that the backward pass has reached.
    pub(super) d_hidden: Span<f32>,
    /// With [`Residual::Sum`], the gradient of the running sum; else empty.
    pub(super) d_sum: Span<f32>,
    /// The gradient of the inner layer after gelu.
    pub(super) d_activated: Span<f32>,
    pub(super) d_context: Span<f32>,
    /// A buffer for the backward pass of attention, `[rows, heads]`.
    pub(super) queries: Span<AttentionQuery>,
}

impl Tape {
    /// Lays out the buffers for `n_rows` rows. In training, the activations of every layer are kept. Otherwise, the
    /// layers share two sets of buffers in turn, and the buffers of the backward pass are empty.
    pub(super) fn lay_out(
        arena: &mut Arena,
        config: &Config,
        n_rows: usize,
        is_training: bool,
    ) -> Self {
        let (hidden, inner) = (config.hidden_size, config.intermediate_size);
        let n_summed = match config.architecture().residual {
            Residual::Normed => 0,
            Residual::Sum => n_rows,
        };
        let n_layers = if is_training { config.n_layers } else { 2.min(config.n_layers) };
        let n_backward = if is_training { n_rows } else { 0 };
        Self {
            dropout_bits: DropoutBits::default(),
            embedded: NormTape::lay_out(arena, n_rows, hidden),
            layers: (0..n_layers)
                .map(|_| LayerTape {
                    qkv: arena.span(n_rows * 3 * hidden),
                    context: arena.operand(n_rows * hidden),
                    context_f32: arena.span(n_backward * hidden),
                    log_sums: arena.span(n_rows * config.n_heads),
                    attended: NormTape::lay_out(arena, n_rows, hidden),
                    inner: arena.span(n_rows * config.intermediate_outputs()),
                    activated: arena.operand(n_rows * inner),
                    output: NormTape::lay_out(arena, n_rows, hidden),
                    gradients: LayerGradients::lay_out(arena, config, n_backward),
                })
                .collect(),
            projected: arena.span(n_rows * hidden),
            d_hidden: arena.span(n_backward * hidden),
            d_sum: arena.span(n_summed.min(n_backward) * hidden),
            d_activated: arena.span(n_backward * inner),
            d_context: arena.span(n_backward * hidden),
            queries: arena.span(n_backward * config.n_heads),
        }
    }

    /// Returns the length of the buffer for the partial sums that a backward pass over `n_rows` rows writes.
    pub(super) fn n_partials(config: &Config, n_rows: usize) -> usize {
        let (family, hidden) = (config.architecture(), config.hidden_size);
        let (norm, columns) = (n_rows.div_ceil(norm_rows(hidden)), n_rows.div_ceil(ROWS_PER_SUM));
        let n_norm_sums = match family.residual {
            Residual::Normed => 3,
            Residual::Sum => 1,
        };
        let inner = match family.feed_forward {
            FeedForward::Plain => config.intermediate_size,
            FeedForward::Gated => 0,
        };
        let qkv = if family.has_biases { 3 * hidden } else { 0 };
        let n_taken = PartialSums::n_taken;
        let layer = 2 * n_taken(norm, n_norm_sums * hidden) + n_taken(columns, inner);
        let qkv = n_taken(config.n_layers * columns, qkv);
        n_taken(norm, 3 * hidden) + config.n_layers * layer + qkv
    }

    /// With [`Residual::Sum`], the running sum of the parts. It starts as the output of the embedding layer, in whose
    /// buffer it is kept: after the first product, no other kernel reads that buffer.
    pub(super) fn sum(&self) -> Span<f32> {
        self.embedded.normed.y
    }

    /// Returns the operand for the products before and after attention. In training this is the f32 array, because
    /// rounding to bf16 before a softmax harms the gradients more than any other rounding. Otherwise it is the rounded
    /// array.
    pub(super) fn attention_operand(&self, exact: Span<f32>, rounded: FloatSpan) -> FloatSpan {
        if self.d_hidden.len() > 0 { FloatSpan::from_f32(exact) } else { rounded }
    }

    /// Returns the output of the last layer.
    pub(super) fn last_hidden(&self, config: &Config) -> NormTape {
        self.layer_input(config.n_layers)
    }

    /// Returns the input of a layer: the output of the layer before it, or the embeddings.
    pub(super) fn layer_input(&self, layer: usize) -> NormTape {
        match layer.checked_sub(1) {
            None => self.embedded,
            Some(before) => self.layers[before % self.layers.len()].output,
        }
    }
}
