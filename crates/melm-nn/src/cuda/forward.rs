//! The forward pass of the encoder.

use super::dropout_bits::DropoutBits;
use super::kernels::{Argument, Grid, KernelDropout, launch};
use super::pass::Pass;
use super::product::{Operand, Product, ProductSize};
use super::program::{
    COLUMNS_PER_SUM, Kernel, ROWS_AT_ONCE, ROWS_PER_SUM, norm_groups, norm_rows, norm_threads,
};
use super::span::{FloatSpan, Span};
use super::tape::{Affine, LayerTape, Normed, Tape};
use super::to_u32;
use crate::architecture::{FeedForward, Residual};
use crate::dropout::Site;
use crate::encoder::{LayerParams, LinearParams};
use crate::error::Error;

/// The attention heads of a layer (`Heads` in `heads.cuh`).
#[repr(C)]
#[derive(Clone, Copy)]
pub(super) struct Heads {
    pub(super) qkv: Span<f32>,
    pub(super) scale: f32,
    /// The largest distance between a query and a key that it sees.
    pub(super) window: u32,
    pub(super) dropout: KernelDropout,
    /// The frequencies of rotary positions; empty if the model has none.
    pub(super) frequencies: Span<f32>,
    pub(super) dropout_bits: DropoutBits,
}

impl Argument for Heads {}

/// The window of a layer without a window. No sentence is that long, and kernels can add lengths to it.
pub(super) const NO_WINDOW: u32 = 1 << 30;

/// Returns the input width and the output width of a linear layer.
pub(super) fn widths(params: &LinearParams) -> (usize, usize) {
    (params.weight.len() / params.n_outputs, params.n_outputs)
}

/// Returns the grid of the kernels of `rows.cu` whose blocks have [`ROWS_PER_SUM`] rows.
pub(super) fn column_grid(width: usize, n_rows: usize) -> Grid {
    let blocks = [width.div_ceil(COLUMNS_PER_SUM), n_rows.div_ceil(ROWS_PER_SUM), 1];
    Grid::new(blocks, COLUMNS_PER_SUM)
}

impl Pass<'_> {
    /// Returns the grid of the forward kernels of layer norms: one block for each row.
    fn norm_grid(&self, n_rows: usize) -> Grid {
        Grid::linear(n_rows, norm_threads(self.config().hidden_size))
    }

    /// Returns the grid of the backward kernels of layer norms.
    pub(super) fn norm_backward_grid(&self, n_rows: usize) -> Grid {
        let hidden = self.config().hidden_size;
        let n_blocks = n_rows.div_ceil(norm_rows(hidden));
        Grid::linear(n_blocks, norm_groups(hidden) * norm_threads(hidden))
    }

    /// Computes the hidden states of the batch.
    pub(super) fn forward(&self, tape: &Tape) -> Result<(), Error> {
        let encoder = self.encoder;
        let config = self.config();
        launch!(
            self.kernels,
            EmbedForward,
            self.norm_grid(self.n_rows),
            self.weights.master(&encoder.table),
            encoder
                .positions
                .as_ref()
                .map_or_else(Span::default, |range| self.weights.master(range)),
            encoder.kinds.as_ref().map_or_else(Span::default, |kinds| self.weights.master(kinds)),
            Affine::new(&self.weights, &encoder.norm, config.layer_norm_eps),
            KernelDropout::new(&self.dropout, 0, Site::Embedding),
            self.inputs.pieces,
            self.inputs.row_positions,
            to_u32(config.first_position()),
            tape.embedded.normed,
        );
        tape.dropout_bits.compute(&self.kernels, config, &self.dropout, &self.inputs)?;
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
        self.rotate(layer, index)?;
        let heads = self.heads(layer, tape.dropout_bits, index);
        let kernel = if self.inputs.block.uses_tensor_cores {
            Kernel::TensorAttentionForward
        } else {
            Kernel::AttentionForward
        };
        launch!(
            self.kernels,
            (kernel),
            self.inputs.attention_grid(self.config(), 1),
            heads,
            self.inputs.tiles,
            layer.context.argument(),
            layer.context_f32,
            layer.log_sums,
        );
        let none = Span::default();
        let context = tape.attention_operand(layer.context_f32, layer.context);
        self.linear(context, &params.attention_output, tape.projected, none)?;
        let dropout = KernelDropout::new(&self.dropout, index, Site::AttentionOutput);
        let (part, norm) = (&params.attention_output, &params.attention_norm);
        self.add_and_norm(tape, part, x.normed, norm, dropout, layer.attended.normed)?;
        let inner = &params.intermediate;
        let bias = weights.master(&inner.bias);
        self.linear(layer.attended.operand, inner, layer.inner, bias)?;
        self.activate(inner, layer, index)?;
        self.linear(layer.activated, &params.output, tape.projected, none)?;
        let dropout = KernelDropout::new(&self.dropout, index, Site::Output);
        let (part, norm) = (&params.output, &params.output_norm);
        self.add_and_norm(tape, part, layer.attended.normed, norm, dropout, layer.output.normed)
    }

    /// Rotates queries and keys by their positions if the model has rotary positions.
    fn rotate(&self, layer: &LayerTape, index: usize) -> Result<(), Error> {
        let frequencies = self.frequencies(index);
        if frequencies.len() > 0 {
            let (grid, positions) = (Grid::linear(self.n_rows, 256), self.inputs.row_positions);
            launch!(self.kernels, Rotate, grid, layer.qkv, frequencies, positions);
        }
        Ok(())
    }

    /// Returns the frequencies of the rotary positions of a layer; empty if the model has none.
    fn frequencies(&self, layer: usize) -> Span<f32> {
        let all = self.inputs.frequencies;
        let n = all.len() / self.config().n_layers;
        all.slice(layer * n..(layer + 1) * n)
    }

    /// Adds the output of a part, in `tape.projected` and without its bias, to the residual. Writes the norm of the sum
    /// to `out`. `input` is the input of the part.
    fn add_and_norm(
        &self,
        tape: &Tape,
        part: &LinearParams,
        input: Normed,
        norm: &LinearParams,
        dropout: KernelDropout,
        out: Normed,
    ) -> Result<(), Error> {
        let bias = self.weights.master(&part.bias);
        match self.config().architecture().residual {
            Residual::Normed => self.norm(tape.projected, bias, input.y, norm, dropout, out),
            Residual::Sum => {
                assert_eq!(bias.len(), 0, "the kernel adds no bias");
                launch!(
                    self.kernels,
                    SumNormForward,
                    self.norm_grid(self.n_rows),
                    tape.projected,
                    tape.sum(),
                    Affine::new(&self.weights, norm, self.config().layer_norm_eps),
                    dropout,
                    self.inputs.row_positions,
                    out,
                );
                Ok(())
            }
        }
    }

    /// Computes `layer.activated` from `layer.inner`: applies gelu, or the gate and dropout.
    fn activate(
        &self,
        params: &LinearParams,
        layer: &LayerTape,
        index: usize,
    ) -> Result<(), Error> {
        let out = layer.activated.argument();
        match self.config().architecture().feed_forward {
            FeedForward::Plain => self.gelu(params, layer.inner, out, Span::default()),
            FeedForward::Gated => {
                launch!(
                    self.kernels,
                    GegluForward,
                    self.gated_grid(),
                    layer.inner,
                    KernelDropout::new(&self.dropout, index, Site::Inner),
                    self.inputs.row_positions,
                    out,
                    to_u32(self.config().intermediate_size),
                    to_u32(self.n_rows),
                );
                Ok(())
            }
        }
    }

    /// Returns the grid of the kernels for gated feed-forward layers.
    pub(super) fn gated_grid(&self) -> Grid {
        let width = self.config().intermediate_size;
        Grid::new([width.div_ceil(256), self.n_rows.div_ceil(ROWS_AT_ONCE), 1], 256)
    }

    pub(super) fn heads(
        &self,
        layer: &LayerTape,
        dropout_bits: DropoutBits,
        index: usize,
    ) -> Heads {
        let config = self.config();
        Heads {
            qkv: layer.qkv,
            scale: 1.0 / ((config.hidden_size / config.n_heads) as f32).sqrt(),
            dropout: KernelDropout::new(&self.dropout, index, Site::Attention),
            frequencies: self.frequencies(index),
            dropout_bits: dropout_bits.of_layer(index, config.n_layers),
            window: config.window(index).map_or(NO_WINDOW, |window| to_u32(window).min(NO_WINDOW)),
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
            self.norm_grid(n_rows),
            x,
            bias,
            residual,
            affine,
            dropout,
            self.inputs.row_positions,
            out,
        );
        Ok(())
    }

    /// Computes `g = gelu(u)`, where `u` is an output of `params`. Writes `g` in the type that products read, in f32, or in
    /// both. Pass an empty span for an output that is not needed.
    pub(super) fn gelu(
        &self,
        params: &LinearParams,
        u: Span<f32>,
        operand: Span<u16>,
        exact: Span<f32>,
    ) -> Result<(), Error> {
        let width = params.n_outputs;
        let n_rows = u.len() / width;
        let grid = column_grid(width, n_rows);
        let (width, n_rows) = (to_u32(width), to_u32(n_rows));
        launch!(self.kernels, GeluForward, grid, u, operand, exact, width, n_rows);
        Ok(())
    }
}
