//! The forward pass of the encoder.

use super::kernels::{Argument, Grid, KernelDropout, launch};
use super::pass::Pass;
use super::product::{Operand, Product, ProductSize};
use super::program::{attention_block, norm_rows};
use super::span::{FloatSpan, Span};
use super::tape::{Affine, LayerTape, Normed, Tape};
use super::to_u32;
use crate::dropout::Site;
use crate::encoder::{LayerParams, LinearParams};
use crate::error::Error;

/// The attention heads of a layer (`Heads` in `attention.cu`).
#[repr(C)]
#[derive(Clone, Copy)]
pub(super) struct Heads {
    qkv: Span<f32>,
    count: u32,
    scale: f32,
    dropout: KernelDropout,
}

impl Argument for Heads {}

/// Returns the input width and the output width of a linear layer.
pub(super) fn widths(params: &LinearParams) -> (usize, usize) {
    let linear = params.linear();
    (linear.inputs, linear.outputs)
}

impl Pass<'_> {
    /// Returns the grid for kernels that use one warp per row.
    pub(super) fn warp_per_row(&self, n_rows: usize) -> Grid {
        let rows = norm_rows(self.config().hidden_size);
        Grid::linear(n_rows.div_ceil(rows), 32 * rows)
    }

    /// Computes the hidden states of the batch.
    pub(super) fn forward(&self, tape: &Tape) -> Result<(), Error> {
        let encoder = self.encoder;
        let config = self.config();
        launch!(
            self.kernels,
            EmbedForward,
            self.warp_per_row(self.n_rows),
            self.weights.master(&encoder.table),
            encoder
                .positions
                .as_ref()
                .map_or_else(Span::default, |table| self.weights.master(table)),
            encoder.kinds.as_ref().map_or_else(Span::default, |kinds| self.weights.master(kinds)),
            Affine::new(&self.weights, &encoder.norm, config.layer_norm_eps),
            KernelDropout::new(&self.dropout, 0, Site::Embedding),
            self.inputs.pieces,
            self.inputs.row_positions,
            to_u32(config.first_position()),
            tape.embedded.normed,
            to_u32(self.n_rows),
        );
        for (index, params) in encoder.layers.iter().enumerate() {
            self.forward_layer(tape, index, params)?;
        }
        Ok(())
    }

    fn forward_layer(&self, tape: &Tape, index: usize, params: &LayerParams) -> Result<(), Error> {
        let weights = &self.weights;
        let layer = &tape.layers[index % tape.layers.len()];
        let x = tape.layer_input(index);
        let input = tape.attention_operand(x.normed.y, x.operand);
        self.linear(input, &params.qkv, layer.qkv, weights.master(&params.qkv.bias))?;
        let grid = [self.inputs.tiles.len(), self.config().n_heads, 1];
        launch!(
            self.kernels,
            AttentionForward,
            Grid::new(grid, self.attention_threads()),
            self.heads(layer, index),
            self.inputs.tiles,
            layer.context.argument(),
            layer.context_f32,
            layer.log_sums,
        );
        let none = Span::default();
        let context = tape.attention_operand(layer.context_f32, layer.context);
        self.linear(context, &params.attention_output, tape.projected, none)?;
        let bias = weights.master(&params.attention_output.bias);
        let dropout = KernelDropout::new(&self.dropout, index, Site::AttentionOutput);
        let (norm, out) = (&params.attention_norm, layer.attended.normed);
        self.norm(tape.projected, bias, x.normed.y, norm, dropout, out)?;
        self.linear(layer.attended.operand, &params.intermediate, layer.inner, none)?;
        self.gelu(&params.intermediate, layer.inner, layer.activated.argument(), none)?;
        self.linear(layer.activated, &params.output, tape.projected, none)?;
        let bias = weights.master(&params.output.bias);
        let dropout = KernelDropout::new(&self.dropout, index, Site::Output);
        let (norm, out) = (&params.output_norm, layer.output.normed);
        self.norm(tape.projected, bias, layer.attended.normed.y, norm, dropout, out)
    }

    /// Returns the number of threads in one block of the attention kernels.
    pub(super) fn attention_threads(&self) -> usize {
        32 * attention_block(self.config().hidden_size / self.config().n_heads).0
    }

    pub(super) fn heads(&self, layer: &LayerTape, index: usize) -> Heads {
        let config = self.config();
        Heads {
            qkv: layer.qkv,
            count: to_u32(config.n_heads),
            scale: 1.0 / ((config.hidden_size / config.n_heads) as f32).sqrt(),
            dropout: KernelDropout::new(&self.dropout, index, Site::Attention),
        }
    }

    /// Computes `y = x W^T + bias`; `bias` may be empty.
    pub(super) fn linear(
        &self,
        x: FloatSpan,
        params: &LinearParams,
        y: Span<f32>,
        bias: Span<f32>,
    ) -> Result<(), Error> {
        let (n_inputs, n_outputs) = widths(params);
        let size = ProductSize { m: y.len() / n_outputs, n: n_outputs, k: n_inputs };
        let weight = Operand::new(self.weights.operand_like(x, &params.weight), n_inputs);
        let product = Product::new(size, Operand::new(x, n_inputs), weight.transposed(), y);
        self.kernels.product(&product.with_bias(bias))
    }

    /// Computes `out = norm(residual + dropout(x + bias))`; `bias` and `residual` may be empty.
    pub(super) fn norm(
        &self,
        x: Span<f32>,
        bias: Span<f32>,
        residual: Span<f32>,
        params: &LinearParams,
        dropout: KernelDropout,
        out: Normed,
    ) -> Result<(), Error> {
        let affine = Affine::new(&self.weights, params, self.config().layer_norm_eps);
        let n_rows = x.len() / self.config().hidden_size;
        launch!(
            self.kernels,
            NormForward,
            self.warp_per_row(n_rows),
            x,
            bias,
            residual,
            affine,
            dropout,
            self.inputs.row_positions,
            out,
            to_u32(n_rows),
        );
        Ok(())
    }

    /// Computes `u += bias; g = gelu(u)`. Writes `g` in the type that products read, in f32, or in both. Pass an
    /// empty span for an output that is not needed.
    pub(super) fn gelu(
        &self,
        params: &LinearParams,
        u: Span<f32>,
        operand: Span<u16>,
        exact: Span<f32>,
    ) -> Result<(), Error> {
        let width = params.n_outputs;
        let n_rows = u.len() / width;
        let grid = Grid::new([width.div_ceil(256), n_rows.div_ceil(4), 1], 256);
        let bias = self.weights.master(&params.bias);
        let (width, n_rows) = (to_u32(width), to_u32(n_rows));
        launch!(self.kernels, GeluForward, grid, bias, u, operand, exact, width, n_rows);
        Ok(())
    }
}
