//! A batch through the encoder.

use super::inputs::Inputs;
use super::kernels::{Argument, Drop, Kernels, launch};
use super::machine::{Factor, Numbers, Product, Span};
use super::n32;
use super::program::{attention_block, norm_rows};
use super::tape::{Affine, LayerTape, Normed, Tape};
use super::weights::Weights;
use crate::config::Config;
use crate::dropout::{Dropout, Site};
use crate::encoder::{Encoder, LayerParams, LinearParams};
use crate::error::Error;

/// Heads of attention; as `attention.cu` has it.
#[repr(C)]
#[derive(Clone, Copy)]
pub(super) struct Heads {
    qkv: Span<f32>,
    count: u32,
    scale: f32,
    drop: Drop,
}

impl Argument for Heads {}

/// One batch on its way.
pub(super) struct Pass<'a> {
    pub(super) kernels: &'a Kernels,
    pub(super) weights: &'a Weights,
    pub(super) encoder: &'a Encoder,
    pub(super) inputs: Inputs,
    pub(super) dropout: Dropout,
    pub(super) n: usize,
}

impl Pass<'_> {
    pub(super) fn config(&self) -> &Config {
        self.encoder.config()
    }

    /// Blocks and threads of the kernels that take a warp a row.
    pub(super) fn by_rows(&self, n: usize) -> ([usize; 3], usize) {
        let rows = norm_rows(self.config().hidden_size);
        ([n.div_ceil(rows), 1, 1], 32 * rows)
    }

    pub(super) fn forward(&self, tape: &Tape) -> Result<(), Error> {
        let encoder = self.encoder;
        let config = self.config();
        launch!(
            self.kernels,
            EmbedForward,
            self.by_rows(self.n),
            self.weights.plain(&encoder.table),
            self.weights.plain(&encoder.positions),
            self.weights.plain(&encoder.kinds),
            Affine::of(self.weights, &encoder.norm, config.layer_norm_eps),
            Drop::at(&self.dropout, 0, Site::Embedding),
            self.inputs.pieces,
            self.inputs.places,
            config.pad_id + 1,
            tape.embedded.normed,
            n32(self.n),
        );
        for (index, place) in encoder.layers.iter().enumerate() {
            self.forward_layer(tape, index, place)?;
        }
        Ok(())
    }

    fn forward_layer(&self, tape: &Tape, index: usize, place: &LayerParams) -> Result<(), Error> {
        let (config, weights) = (self.config(), self.weights);
        let (hidden, inner) = (config.hidden_size, config.intermediate_size);
        let own = &tape.layers[index % tape.layers.len()];
        let x = tape.after(index);
        let bias = weights.plain(&place.qkv.bias);
        let input = tape.finer(x.normed.y, x.y);
        self.linear(input, (&place.qkv, hidden, 3 * hidden), own.qkv, bias)?;
        let grid = [self.inputs.tasks.len(), config.n_heads, 1];
        launch!(
            self.kernels,
            AttentionForward,
            (grid, self.attention_threads()),
            self.heads(own, index),
            self.inputs.tasks,
            own.context.span(),
            own.plain_context,
            own.log_sums,
        );
        let none = Span::default();
        let context = tape.finer(own.plain_context, own.context);
        self.linear(context, (&place.attention_output, hidden, hidden), tape.narrow, none)?;
        let bias = weights.plain(&place.attention_output.bias);
        let drop = Drop::at(&self.dropout, index, Site::AttentionOutput);
        let before = (tape.narrow, bias, x.normed.y);
        self.norm(before, &place.attention_norm, drop, own.attended.normed)?;
        self.linear(own.attended.y, (&place.intermediate, hidden, inner), own.inner, none)?;
        self.gelu((&place.intermediate, inner), self.n, own.inner, (own.activated.span(), none))?;
        self.linear(own.activated, (&place.output, inner, hidden), tape.narrow, none)?;
        let drop = Drop::at(&self.dropout, index, Site::Output);
        let before = (tape.narrow, weights.plain(&place.output.bias), own.attended.normed.y);
        self.norm(before, &place.output_norm, drop, own.output.normed)
    }

    pub(super) fn attention_threads(&self) -> usize {
        32 * attention_block(self.config().hidden_size / self.config().n_heads).0
    }

    pub(super) fn heads(&self, own: &LayerTape, layer: usize) -> Heads {
        let config = self.config();
        Heads {
            qkv: own.qkv,
            count: n32(config.n_heads),
            scale: 1.0 / ((config.hidden_size / config.n_heads) as f32).sqrt(),
            drop: Drop::at(&self.dropout, layer, Site::Attention),
        }
    }

    /// `y = x W^T`, and the bias where there is one.
    fn linear(
        &self,
        x: Numbers,
        (place, inputs, outputs): (&LinearParams, usize, usize),
        y: Span<f32>,
        bias: Span<f32>,
    ) -> Result<(), Error> {
        self.linear_of(self.n, x, (place, inputs, outputs), y, bias)
    }

    pub(super) fn linear_of(
        &self,
        n: usize,
        x: Numbers,
        (place, inputs, outputs): (&LinearParams, usize, usize),
        y: Span<f32>,
        bias: Span<f32>,
    ) -> Result<(), Error> {
        let weight = Factor::of(self.weights.like(x, &place.weight), inputs);
        self.kernels.product(&Product {
            m: n,
            n: outputs,
            k: inputs,
            a: Factor::of(x, inputs),
            b: weight.transposed(),
            out: y,
            out_row: outputs,
            out_batch: 0,
            accumulates: false,
            bias,
            n_batches: 1,
        })
    }

    /// `y = norm(residual + dropout(x + bias))`; bias and residual may be empty.
    pub(super) fn norm(
        &self,
        (x, bias, residual): (Span<f32>, Span<f32>, Span<f32>),
        place: &LinearParams,
        drop: Drop,
        out: Normed,
    ) -> Result<(), Error> {
        let affine = Affine::of(self.weights, place, self.config().layer_norm_eps);
        let n = x.len() / self.config().hidden_size;
        let over = self.by_rows(n);
        let places = self.inputs.places;
        launch!(
            self.kernels,
            NormForward,
            over,
            x,
            bias,
            residual,
            affine,
            drop,
            places,
            out,
            n32(n)
        );
        Ok(())
    }

    /// `u += bias; g = gelu(u)` over `n` rows, `g` for products, plain, or both.
    pub(super) fn gelu(
        &self,
        (place, width): (&LinearParams, usize),
        n: usize,
        u: Span<f32>,
        (g, plain): (Span<u16>, Span<f32>),
    ) -> Result<(), Error> {
        let grid = [width.div_ceil(256), n.div_ceil(4), 1];
        let bias = self.weights.plain(&place.bias);
        launch!(self.kernels, GeluForward, (grid, 256), bias, u, g, plain, n32(width), n32(n));
        Ok(())
    }
}
