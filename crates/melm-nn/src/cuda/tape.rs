//! What a forward pass leaves for the way back, laid out in one block.

use super::kernels::Argument;
use super::machine::{Numbers, Span};
use super::memory::Arena;
use super::program::{ROWS_PER_SUM, norm_rows};
use super::weights::Weights;
use crate::config::Config;
use crate::encoder::LinearParams;

/// Rows after a layer norm, and what its backward pass needs; as `norm.cu` has it.
#[repr(C)]
#[derive(Clone, Copy, Default)]
pub(super) struct Normed {
    pub(super) rows: Span<f32>,
    pub(super) scale: Span<f32>,
    pub(super) y: Span<f32>,
    pub(super) y_product: Span<u16>,
}

impl Argument for Normed {}

/// Scale and shift of a layer norm; as `norm.cu` has it.
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
    pub(super) fn of(weights: &Weights, place: &LinearParams, eps: f32) -> Self {
        let (weight, bias) = (weights.plain(&place.weight), weights.plain(&place.bias));
        Self { weight, bias, eps, unused: 0 }
    }
}

/// A norm's output with the numbers that products read.
#[derive(Clone, Copy, Default)]
pub(super) struct NormTape {
    pub(super) normed: Normed,
    pub(super) y: Numbers,
}

impl NormTape {
    pub(super) fn lay_out(arena: &mut Arena, n_rows: usize, width: usize) -> Self {
        let y = arena.numbers(n_rows * width);
        let normed = Normed {
            rows: arena.span(n_rows * width),
            scale: arena.span(n_rows),
            y: arena.span(n_rows * width),
            y_product: y.span(),
        };
        Self { normed, y }
    }
}

/// What one layer leaves.
#[derive(Clone, Copy)]
pub(super) struct LayerTape {
    pub(super) qkv: Span<f32>,
    pub(super) context: Numbers,
    pub(super) plain_context: Span<f32>,
    pub(super) log_sums: Span<f32>,
    pub(super) attended: NormTape,
    /// The feed-forward part before and after its gelu.
    pub(super) inner: Span<f32>,
    pub(super) activated: Numbers,
    pub(super) output: NormTape,
}

/// Buffers of one batch.
pub(super) struct Tape {
    pub(super) embedded: NormTape,
    pub(super) layers: Vec<LayerTape>,
    pub(super) narrow: Span<f32>,
    pub(super) d: Span<f32>,
    pub(super) dx: Numbers,
    pub(super) d_inner: Span<f32>,
    pub(super) du: Numbers,
    pub(super) d_context: Span<f32>,
    pub(super) d_qkv: Numbers,
}

impl Tape {
    /// With `keeps_layers` a tape that can be played back; without, two layers take turns.
    pub(super) fn lay_out(
        arena: &mut Arena,
        config: &Config,
        n: usize,
        keeps_layers: bool,
    ) -> Self {
        let (hidden, inner) = (config.hidden_size, config.intermediate_size);
        let n_kept = if keeps_layers { config.n_layers } else { 2.min(config.n_layers) };
        let back = if keeps_layers { n } else { 0 };
        Self {
            embedded: NormTape::lay_out(arena, n, hidden),
            layers: (0..n_kept)
                .map(|_| LayerTape {
                    qkv: arena.span(n * 3 * hidden),
                    context: arena.numbers(n * hidden),
                    plain_context: arena.span(back * hidden),
                    log_sums: arena.span(n * config.n_heads),
                    attended: NormTape::lay_out(arena, n, hidden),
                    inner: arena.span(n * inner),
                    activated: arena.numbers(n * inner),
                    output: NormTape::lay_out(arena, n, hidden),
                })
                .collect(),
            narrow: arena.span(n * hidden),
            d: arena.span(back * hidden),
            dx: arena.numbers(back * hidden),
            d_inner: arena.span(back * inner),
            du: arena.numbers(back * inner),
            d_context: arena.span(back * hidden),
            d_qkv: arena.numbers(back * 3 * hidden),
        }
    }

    /// The partial sums that a backward pass over `n` rows leaves.
    pub(super) fn n_partials(config: &Config, n: usize) -> usize {
        let (hidden, inner) = (config.hidden_size, config.intermediate_size);
        let (norm, columns) = (n.div_ceil(norm_rows(hidden)), n.div_ceil(ROWS_PER_SUM));
        3 * hidden * norm + config.n_layers * (6 * hidden * norm + (inner + 3 * hidden) * columns)
    }

    /// What the products around attention read. Where gradients are wanted, numbers as they are: of all roundings to bf16
    /// those before a softmax cost the gradients most.
    pub(super) fn finer(&self, plain: Span<f32>, rounded: Numbers) -> Numbers {
        if self.d.len() > 0 { Numbers::plain(plain) } else { rounded }
    }

    /// What the last layer made.
    pub(super) fn hidden(&self, config: &Config) -> NormTape {
        self.after(config.n_layers)
    }

    pub(super) fn after(&self, n_layers: usize) -> NormTape {
        match n_layers.checked_sub(1) {
            None => self.embedded,
            Some(layer) => self.layers[layer % self.layers.len()].output,
        }
    }
}
