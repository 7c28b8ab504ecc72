//! The backward pass of the encoder: the steps of the forward pass in reverse order.

use super::attention::AttentionBackward;
use super::forward::{column_grid, widths};
use super::kernels::{Grid, KernelDropout, launch};
use super::pass::Pass;
use super::product::{Operand, Product, ProductSize};
use super::program::ROWS_PER_SUM;
use super::span::{FloatSpan, Span};
use super::sums::{PartialRows, PartialSums};
use super::tape::{Normed, Tape};
use super::to_u32;
use super::weight_products::{WeightProducts, weight_product};
use crate::architecture::{FeedForward, Residual};
use crate::dropout::Site;
use crate::encoder::{BackwardEnd, LinearParams};
use crate::error::Error;
use crate::gradients::Gradients;
use crate::params::Parameters;
use std::ops::Range;

/// Collects the gradients that a backward pass computes.
pub(super) struct GradientSink<'a> {
    /// The parameters of the model, which also define which of them are trained.
    pub(super) parameters: &'a Parameters,
    pub(super) gradients: &'a mut Gradients,
    pub(super) sums: PartialSums,
}

impl GradientSink<'_> {
    /// Schedules a sum over `rows`: the columns from `first_column` on are added up into the gradient of `range`. Does
    /// nothing if the range is empty, as the range of a bias that the model does not have.
    pub(super) fn reduce(&mut self, rows: &PartialRows, first_column: usize, range: &Range<usize>) {
        if !range.is_empty() {
            self.sums.reduce_into(rows, first_column, range, self.gradients);
        }
    }
}

/// The arguments of [`Pass::norm_backward`].
pub(super) struct NormGradient<'a> {
    pub(super) params: &'a LinearParams,
    /// The output of the layer norm in the forward pass.
    pub(super) normed: Normed,
    pub(super) dropout: KernelDropout,
    /// On entry the gradient of the layer norm's output; on return the gradient of its residual input.
    pub(super) d: Span<f32>,
    /// Receives the gradient of `x` in the type that products read; not written if empty.
    pub(super) dx: FloatSpan,
    /// The bias that was added to `x`, if there was one.
    pub(super) bias: Option<&'a Range<usize>>,
}

impl Pass<'_> {
    /// Computes the gradients of all trained parameters from `tape.d_hidden`, the gradient of the hidden states. Layers
    /// below the first trained one are left out.
    pub(super) fn backward(
        &self,
        tape: &Tape,
        pieces: &[u32],
        sink: &mut GradientSink<'_>,
    ) -> Result<(), Error> {
        self.kernels.clear(tape.d_sum)?;
        let end = self.encoder.backward_end(sink.parameters);
        let mut products = WeightProducts::default();
        for index in end.layers(self.encoder.layers.len()) {
            self.feed_forward_backward(tape, index, sink, &mut products)?;
            self.attention_backward(tape, index, end, sink, &mut products)?;
        }
        products.compute(&self.kernels)?;
        self.qkv_bias_gradients(tape, end, sink)?;
        match end {
            BackwardEnd::Embeddings => self.embedding_backward(tape, pieces, sink),
            BackwardEnd::Layer(_) => Ok(()),
        }
    }

    fn feed_forward_backward(
        &self,
        tape: &Tape,
        index: usize,
        sink: &mut GradientSink<'_>,
        products: &mut WeightProducts,
    ) -> Result<(), Error> {
        let (params, layer) = (&self.encoder.layers[index], &tape.layers[index]);
        let d = layer.gradients;
        let norm = NormGradient {
            params: &params.output_norm,
            normed: layer.output.normed,
            dropout: KernelDropout::new(&self.dropout, index, Site::Output),
            d: tape.d_hidden,
            dx: d.output,
            bias: Some(&params.output.bias),
        };
        self.add_and_norm_backward(&norm, tape, sink)?;
        self.linear_backward(d.output, &params.output, tape.d_activated, false)?;
        let product = weight_product(d.output, layer.activated, &params.output, sink);
        products.output.extend(product);
        let intermediate = &params.intermediate;
        self.activation_backward(tape, index, sink)?;
        let product = weight_product(d.inner, layer.attended.operand, intermediate, sink);
        products.inner.extend(product);
        let adds = self.config().architecture().residual == Residual::Normed;
        self.linear_backward(d.inner, intermediate, tape.d_hidden, adds)
    }

    /// Computes the gradient of the inner layer from `tape.d_activated`, and the gradient of the bias if there is one.
    fn activation_backward(
        &self,
        tape: &Tape,
        index: usize,
        sink: &mut GradientSink<'_>,
    ) -> Result<(), Error> {
        let (params, layer) = (&self.encoder.layers[index].intermediate, &tape.layers[index]);
        match self.config().architecture().feed_forward {
            FeedForward::Plain => self.gelu_backward(
                params,
                layer.inner,
                tape.d_activated,
                layer.gradients.inner,
                sink,
            ),
            FeedForward::Gated => {
                launch!(
                    self.kernels,
                    GegluBackward,
                    self.gated_grid(),
                    layer.inner,
                    tape.d_activated,
                    KernelDropout::new(&self.dropout, index, Site::Inner),
                    self.inputs.row_positions,
                    layer.gradients.inner.argument(),
                    to_u32(self.config().intermediate_size),
                    to_u32(self.n_rows),
                );
                Ok(())
            }
        }
    }

    fn attention_backward(
        &self,
        tape: &Tape,
        index: usize,
        end: BackwardEnd,
        sink: &mut GradientSink<'_>,
        products: &mut WeightProducts,
    ) -> Result<(), Error> {
        let (params, layer) = (&self.encoder.layers[index], &tape.layers[index]);
        let d = layer.gradients;
        let output = &params.attention_output;
        let norm = NormGradient {
            params: &params.attention_norm,
            normed: layer.attended.normed,
            dropout: KernelDropout::new(&self.dropout, index, Site::AttentionOutput),
            d: tape.d_hidden,
            dx: d.attention_output,
            bias: Some(&output.bias),
        };
        self.add_and_norm_backward(&norm, tape, sink)?;
        self.linear_backward(d.attention_output, output, tape.d_context, false)?;
        let product = weight_product(d.attention_output, layer.context, output, sink);
        products.attention_output.extend(product);
        let attention = AttentionBackward {
            heads: self.heads(layer, tape.dropout_bits, index),
            grid: self.inputs.attention_grid(self.config(), 2),
            inputs: self.inputs,
            context: layer.context_f32,
            log_sums: layer.log_sums,
            d_context: tape.d_context,
            queries: tape.queries,
        };
        attention.launch(&self.kernels, d.qkv.argument())?;
        let input = tape.layer_input(index).operand;
        products.qkv.extend(weight_product(d.qkv, input, &params.qkv, sink));
        if end == BackwardEnd::Layer(index) {
            return Ok(());
        }
        let (dx, adds) = match self.config().architecture().residual {
            Residual::Normed => (tape.d_hidden, true),
            // The first layer has no norm: its input is the running sum.
            Residual::Sum if index == 0 => (tape.d_sum, true),
            Residual::Sum => (tape.d_hidden, false),
        };
        self.linear_backward(d.qkv, &params.qkv, dx, adds)
    }

    /// Computes the gradients of the biases of query, key and value, if there are any, of all layers of the backward pass.
    fn qkv_bias_gradients(
        &self,
        tape: &Tape,
        end: BackwardEnd,
        sink: &mut GradientSink<'_>,
    ) -> Result<(), Error> {
        let layers = end.layers(self.encoder.layers.len()).rev();
        let d_qkv: Vec<_> = layers.clone().map(|index| tape.layers[index].gradients.qkv).collect();
        let width = self.encoder.layers.last().map_or(0, |layer| layer.qkv.bias.len());
        let (n_layers, grid) = (d_qkv.len(), column_grid(width, self.n_rows));
        if n_layers * width == 0 {
            return Ok(());
        }
        let distance = FloatSpan::constant_distance(&d_qkv);
        let all = FloatSpan { len: (n_layers - 1) * distance + d_qkv[0].len, ..d_qkv[0] };
        let n_sums = grid.blocks[1];
        let partial = sink.sums.take(n_layers * n_sums, width);
        launch!(
            self.kernels,
            ColumnSums,
            Grid { blocks: [grid.blocks[0], n_sums, n_layers], ..grid },
            all.argument(),
            distance as u64,
            partial.span,
            to_u32(width),
            to_u32(self.n_rows),
        );
        for (at, index) in layers.enumerate() {
            let rows = partial.rows(at * n_sums..(at + 1) * n_sums);
            sink.reduce(&rows, 0, &self.encoder.layers[index].qkv.bias);
        }
        Ok(())
    }

    fn embedding_backward(
        &self,
        tape: &Tape,
        pieces: &[u32],
        sink: &mut GradientSink<'_>,
    ) -> Result<(), Error> {
        let (encoder, config, hidden) = (self.encoder, self.config(), self.config().hidden_size);
        let grid = self.norm_backward_grid(self.n_rows);
        let out = if sink.parameters.trains(&encoder.table) {
            sink.gradients.gpu_mut().push_lookups(pieces, self.n_rows, config.pad_id)
        } else {
            tape.projected
        };
        let partial = sink.sums.take(grid.blocks[0], 3 * hidden);
        let normed = tape.embedded.normed;
        launch!(
            self.kernels,
            EmbedBackward,
            grid,
            self.weights.master(&encoder.norm.weight),
            normed.rows,
            normed.scale,
            KernelDropout::new(&self.dropout, 0, Site::Embedding),
            self.inputs.row_positions,
            match config.architecture().residual {
                Residual::Normed => tape.d_hidden,
                Residual::Sum => tape.d_sum,
            },
            out,
            partial.span,
            to_u32(self.n_rows),
        );
        // The backward pass writes only some rows of these tables. The other rows must be zero.
        for range in encoder.kinds.iter().chain(&encoder.positions) {
            if !sink.gradients.mark(range) {
                self.kernels.clear(sink.gradients.gpu_mut().at(range))?;
            }
        }
        sink.reduce(&partial, 0, &encoder.norm.weight);
        sink.reduce(&partial, hidden, &encoder.norm.bias);
        if let Some(first_kind) = encoder.first_kind() {
            sink.reduce(&partial, 2 * hidden, &first_kind);
        }
        if let Some(positions) = &encoder.positions {
            launch!(
                self.kernels,
                PositionGradient,
                Grid::linear(self.inputs.max_length, 256),
                out,
                self.inputs.sentence_starts,
                to_u32(self.inputs.n_sentences),
                to_u32(config.first_position()),
                sink.gradients.gpu_mut().at(positions),
            );
        }
        Ok(())
    }

    /// Computes the gradients of the output of a part, of the residual and of the norm from the gradient of the norm's
    /// output in `tape.d_hidden`.
    fn add_and_norm_backward(
        &self,
        norm: &NormGradient<'_>,
        tape: &Tape,
        sink: &mut GradientSink<'_>,
    ) -> Result<(), Error> {
        if self.config().architecture().residual == Residual::Normed {
            return self.norm_backward(norm, sink);
        }
        let grid = self.norm_backward_grid(self.n_rows);
        let partial = sink.sums.take(grid.blocks[0], self.config().hidden_size);
        launch!(
            self.kernels,
            SumNormBackward,
            grid,
            self.weights.master(&norm.params.weight),
            norm.normed.rows,
            norm.normed.scale,
            norm.dropout,
            self.inputs.row_positions,
            norm.d,
            tape.d_sum,
            norm.dx.argument(),
            partial.span,
            to_u32(self.n_rows),
        );
        sink.reduce(&partial, 0, &norm.params.weight);
        Ok(())
    }

    /// Computes the gradients of the inputs and parameters of [`Self::norm`].
    pub(super) fn norm_backward(
        &self,
        norm: &NormGradient<'_>,
        sink: &mut GradientSink<'_>,
    ) -> Result<(), Error> {
        let hidden = self.config().hidden_size;
        let n_rows = norm.d.len() / hidden;
        let grid = self.norm_backward_grid(n_rows);
        let partial = sink.sums.take(grid.blocks[0], 3 * hidden);
        launch!(
            self.kernels,
            NormBackward,
            grid,
            self.weights.master(&norm.params.weight),
            norm.normed.rows,
            norm.normed.scale,
            norm.dropout,
            self.inputs.row_positions,
            norm.d,
            norm.dx.argument(),
            partial.span,
            to_u32(n_rows),
        );
        sink.reduce(&partial, 0, &norm.params.weight);
        sink.reduce(&partial, hidden, &norm.params.bias);
        if let Some(bias) = norm.bias {
            sink.reduce(&partial, 2 * hidden, bias);
        }
        Ok(())
    }

    /// Computes the gradient of `u` (in `du`) and of the bias of `params` from `d`, the gradient of `gelu(u)`.
    pub(super) fn gelu_backward(
        &self,
        params: &LinearParams,
        u: Span<f32>,
        d: Span<f32>,
        du: FloatSpan,
        sink: &mut GradientSink<'_>,
    ) -> Result<(), Error> {
        let width = params.n_outputs;
        let n_rows = u.len() / width;
        let n_sums = n_rows.div_ceil(ROWS_PER_SUM);
        let partial = sink.sums.take(n_sums, width);
        launch!(
            self.kernels,
            GeluBackward,
            column_grid(width, n_rows),
            u,
            d,
            du.argument(),
            partial.span,
            to_u32(width),
            to_u32(n_rows),
        );
        sink.reduce(&partial, 0, &params.bias);
        Ok(())
    }

    /// Computes `dx = dy W`, or adds the product to `dx`.
    pub(super) fn linear_backward(
        &self,
        dy: FloatSpan,
        params: &LinearParams,
        dx: Span<f32>,
        accumulates: bool,
    ) -> Result<(), Error> {
        let (n_inputs, n_outputs) = widths(params);
        let size = ProductSize { m: dy.len / n_outputs, n: n_inputs, k: n_outputs };
        let weight = Operand::new(self.weights.operand(&params.weight), n_inputs);
        let product = Product::new(size, Operand::new(dy, n_outputs), weight, dx);
        self.kernels.product(&product.accumulating(accumulates))
    }

    /// Computes `dW = dy^T x` or adds the product to `dW`. Does nothing if the weight is not trained.
    pub(super) fn weight_gradient(
        &self,
        dy: FloatSpan,
        x: FloatSpan,
        params: &LinearParams,
        sink: &mut GradientSink<'_>,
    ) -> Result<(), Error> {
        let product = weight_product(dy, x, params, sink);
        product.map_or(Ok(()), |product| self.kernels.product(&product))
    }
}
