//! The buffers of a pass through the encoder: activations that the backward pass reads again, and scratch space.

use super::kernels::Argument;
use super::memory::Arena;
use super::program::{ROWS_PER_SUM, norm_rows};
use super::span::{FloatSpan, Span};
use super::weights::GpuWeights;
use crate::config::Config;
use crate::encoder::LinearParams;

/// The output of a layer norm and the values that its backward pass needs (`Normed` in `norm.cu`).
#[repr(C)]
#[derive(Clone, Copy, Default)]
pub(super) struct Normed {
    /// Rows of mean 0 and variance 1, before scale and shift.
    pub(super) rows: Span<f32>,
    /// One over the standard deviation of each row.
    pub(super) scale: Span<f32>,
    pub(super) y: Span<f32>,
    /// `y` in the type that products read.
    pub(super) y_product: Span<u16>,
}

impl Argument for Normed {}

/// Scale and shift of a layer norm (`Affine` in `norm.cu`).
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

/// The output of a layer norm, also as an operand of products.
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
    /// The same values as `context`, in f32; empty without a backward pass.
    pub(super) context_f32: Span<f32>,
    /// The logarithm of the softmax's denominator, for each row and head.
    pub(super) log_sums: Span<f32>,
    pub(super) attended: NormTape,
    /// The feed-forward part before its gelu.
    pub(super) inner: Span<f32>,
    /// The feed-forward part after its gelu.
    pub(super) activated: FloatSpan,
    pub(super) output: NormTape,
}

/// The buffers of one batch. Names with `d_` are gradients.
pub(super) struct Tape {
    pub(super) embedded: NormTape,
    pub(super) layers: Vec<LayerTape>,
    /// The output of a linear map, `[rows, hidden]`, before its layer norm.
    pub(super) projected: Span<f32>,
    /// The gradient of the hidden states of the layer that the backward pass has reached.
    pub(super) d_hidden: Span<f32>,
    pub(super) d_projected: FloatSpan,
    /// The gradient after the gelu.
    pub(super) d_activated: Span<f32>,
    /// The gradient before the gelu.
    pub(super) d_inner: FloatSpan,
    pub(super) d_context: Span<f32>,
    pub(super) d_qkv: FloatSpan,
}

impl Tape {
    /// Lays out the buffers for `n_rows` rows. Training keeps the activations of every layer; without it two layers
    /// alternate, and the buffers of the backward pass are empty.
    pub(super) fn lay_out(
        arena: &mut Arena,
        config: &Config,
        n_rows: usize,
        is_training: bool,
    ) -> Self {
        let (hidden, inner) = (config.hidden_size, config.intermediate_size);
        let n_layers = if is_training { config.n_layers } else { 2.min(config.n_layers) };
        let n_backward = if is_training { n_rows } else { 0 };
        Self {
            embedded: NormTape::lay_out(arena, n_rows, hidden),
            layers: (0..n_layers)
                .map(|_| LayerTape {
                    qkv: arena.span(n_rows * 3 * hidden),
                    context: arena.operand(n_rows * hidden),
                    context_f32: arena.span(n_backward * hidden),
                    log_sums: arena.span(n_rows * config.n_heads),
                    attended: NormTape::lay_out(arena, n_rows, hidden),
                    inner: arena.span(n_rows * inner),
                    activated: arena.operand(n_rows * inner),
                    output: NormTape::lay_out(arena, n_rows, hidden),
                })
                .collect(),
            projected: arena.span(n_rows * hidden),
            d_hidden: arena.span(n_backward * hidden),
            d_projected: arena.operand(n_backward * hidden),
            d_activated: arena.span(n_backward * inner),
            d_inner: arena.operand(n_backward * inner),
            d_context: arena.span(n_backward * hidden),
            d_qkv: arena.operand(n_backward * 3 * hidden),
        }
    }

    /// Returns the number of partial sums that a backward pass over `n_rows` rows writes.
    pub(super) fn n_partials(config: &Config, n_rows: usize) -> usize {
        let (hidden, inner) = (config.hidden_size, config.intermediate_size);
        let (norm, columns) = (n_rows.div_ceil(norm_rows(hidden)), n_rows.div_ceil(ROWS_PER_SUM));
        3 * hidden * norm + config.n_layers * (6 * hidden * norm + (inner + 3 * hidden) * columns)
    }

    /// Chooses the operand of the products before and after attention: f32 in training, because of all roundings to bf16
    /// those before a softmax cost the gradients most; else the rounded values.
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
