//! The backward pass of the encoder, in the reverse order of the forward pass.

use super::tape::scatter_rows;
use super::{BackwardEnd, Encoder, EncoderTape, LinearParams};
use crate::architecture::FeedForward;
use crate::device::Cpu;
use crate::dropout::Site;
use crate::error::Error;
use crate::gradients::Gradients;
use crate::ops::gated::{self, GatedGradients};
use crate::ops::linear::Accumulator;
use crate::ops::norm::{self, ResidualGradients};
use crate::ops::{ColumnSums, RowDropout, add, embedding, gelu};
use crate::packed::Packed;
use crate::params::Parameters;
use std::ops::Range;

impl Encoder {
    /// Adds the gradient of every trained parameter to `gradients`. The caller must have written the gradient of the
    /// hidden states to [`EncoderTape::d_hidden`], which is overwritten. There must be at least one hidden state.
    ///
    /// `batch` and `tape` must be those of the forward pass. Layers below the first trained one are left out.
    ///
    /// # Errors
    /// Fails with [`Error::OutOfMemory`] if there is not enough memory.
    pub(crate) fn backward(
        &self,
        cpu: &Cpu,
        parameters: &Parameters,
        batch: &Packed,
        tape: &mut EncoderTape,
        gradients: &mut Gradients,
    ) -> Result<(), Error> {
        if self.keeps_sums() {
            // A head may read a row twice, so the last layer can have more rows than the batch.
            let n = tape.n_rows.max(tape.rows.head.len());
            tape.d_residual[..n * self.config.hidden_size].fill(0.0);
        }
        let end = self.backward_end(parameters);
        for layer in end.layers(self.layers.len()) {
            self.feed_forward_backward(cpu, parameters, layer, tape, gradients);
            self.attention_backward(cpu, parameters, layer, end, tape, gradients);
        }
        match end {
            BackwardEnd::Embeddings => {
                self.embedding_backward(cpu, parameters, batch, tape, gradients)
            }
            BackwardEnd::Layer(_) => Ok(()),
        }
    }

    fn feed_forward_backward(
        &self,
        cpu: &Cpu,
        parameters: &Parameters,
        layer: usize,
        tape: &mut EncoderTape,
        gradients: &mut Gradients,
    ) {
        let places = tape.rows.after_attention(layer);
        let dropout = RowDropout { dropout: tape.dropout, places };
        let (n, hidden, inner) =
            (places.len(), self.config.hidden_size, self.config.intermediate_size);
        let params = &self.layers[layer];
        let own = &tape.layers[layer];
        let mask = |row| dropout.mask(layer, Site::Output, row);
        let (dx, d_running) = (&mut tape.narrow[..n * hidden], &mut tape.d_residual);
        let weight = parameters.at(&params.output_norm.weight);
        let d = self.residual_gradients(&mut tape.d[..n * hidden], d_running, dx);
        norm::backward(cpu, weight, own.output.saved(n, hidden), mask, d, &mut tape.sums);
        gradients.add_norm_and_bias(cpu, &tape.sums, &params.output_norm, &params.output.bias);

        let (up, down) = (params.intermediate.linear(), params.output.linear());
        let before = &own.inner[..n * up.outputs];
        let (d_inner, g) = (&mut tape.d_inner[..n * up.outputs], &mut tape.inner[..n * inner]);
        let weight = parameters.at(&params.output.weight);
        match self.config.architecture().feed_forward {
            FeedForward::Plain => {
                down.backward(cpu, dx, weight, Accumulator::overwrite(d_inner));
                gelu::backward(cpu, inner, before, d_inner, g, &mut tape.sums);
                tape.sums.finish_into(cpu, 0, gradients.slot(&params.intermediate.bias));
            }
            FeedForward::Gated => {
                let d_gated = &mut tape.d_gated[..n * inner];
                down.backward(cpu, dx, weight, Accumulator::overwrite(d_gated));
                let mask = |row| dropout.mask(layer, Site::Inner, row);
                let d = GatedGradients { d: d_gated, g, du: d_inner };
                gated::backward(cpu, inner, before, mask, d);
            }
        }
        gradients.add_weight(cpu, parameters, &params.output, dx, g);
        let x = &own.attended.y[..n * hidden];
        gradients.add_weight(cpu, parameters, &params.intermediate, d_inner, x);
        let weight = parameters.at(&params.intermediate.weight);
        up.backward(cpu, d_inner, weight, self.input_gradient(&mut tape.d[..n * hidden]));
    }

    /// Returns the gradients for the backward pass of the norm after a residual sum.
    fn residual_gradients<'a>(
        &self,
        d: &'a mut [f32],
        d_running: &'a mut [f32],
        dx: &'a mut [f32],
    ) -> ResidualGradients<'a> {
        let d_running = self.keeps_sums().then(|| &mut d_running[..d.len()]);
        ResidualGradients { d, d_running, dx }
    }

    /// Returns the gradient of the input of a part. If the input is also the residual, `d` is already the gradient
    /// through the residual, and the other part is added to it.
    fn input_gradient<'a>(&self, d: &'a mut [f32]) -> Accumulator<'a> {
        Accumulator { data: d, accumulates: !self.keeps_sums() }
    }

    fn attention_backward(
        &self,
        cpu: &Cpu,
        parameters: &Parameters,
        layer: usize,
        end: BackwardEnd,
        tape: &mut EncoderTape,
        gradients: &mut Gradients,
    ) {
        let places = tape.rows.after_attention(layer);
        let dropout = RowDropout { dropout: tape.dropout, places };
        let (n, hidden) = (places.len(), self.config.hidden_size);
        let params = &self.layers[layer];
        let own = &tape.layers[layer];
        let is_last = tape.rows.is_last(layer);
        let mask = |row| dropout.mask(layer, Site::AttentionOutput, row);
        let (dx, d_running) = (&mut tape.narrow[..n * hidden], &mut tape.d_residual);
        let weight = parameters.at(&params.attention_norm.weight);
        let d = self.residual_gradients(&mut tape.d[..n * hidden], d_running, dx);
        norm::backward(cpu, weight, own.attended.saved(n, hidden), mask, d, &mut tape.sums);
        let (norm, output) = (&params.attention_norm, &params.attention_output);
        gradients.add_norm_and_bias(cpu, &tape.sums, norm, &output.bias);

        let d_context = if is_last { &mut tape.selected } else { &mut tape.d_context };
        let d_context = Accumulator::overwrite(&mut d_context[..n * hidden]);
        output.linear().backward(cpu, dx, parameters.at(&output.weight), d_context);
        let context = &own.context[..n * hidden];
        gradients.add_weight(cpu, parameters, output, dx, context);

        let n = tape.n_rows;
        if is_last {
            self.scatter_head_rows(cpu, tape);
        }
        let own = &tape.layers[layer];
        let d_context = &tape.d_context[..n * hidden];
        let (qkv, d_qkv) = (&own.qkv[..n * 3 * hidden], &mut tape.d_qkv[..n * 3 * hidden]);
        let attention = self.attention(layer, &tape.angles, tape.dropout);
        attention.backward_joined(cpu, &tape.layout, qkv, &own.probabilities, d_context, d_qkv);
        if !params.qkv.bias.is_empty() {
            tape.sums.sum_rows(cpu, d_qkv, 3 * hidden);
            tape.sums.finish_into(cpu, 0, gradients.slot(&params.qkv.bias));
        }
        let x = match layer.checked_sub(1) {
            None => &tape.embedded.y[..n * hidden],
            Some(before) => &tape.layers[before].output.y[..n * hidden],
        };
        gradients.add_weight(cpu, parameters, &params.qkv, d_qkv, x);
        if end == BackwardEnd::Layer(layer) {
            return;
        }
        let weight = parameters.at(&params.qkv.weight);
        let d = self.input_gradient(&mut tape.d[..n * hidden]);
        params.qkv.linear().backward(cpu, d_qkv, weight, d);
    }

    /// Moves the gradients of the last layer to the rows that the head reads. Those of the other rows are zero.
    fn scatter_head_rows(&self, cpu: &Cpu, tape: &mut EncoderTape) {
        let (n, hidden) = (tape.n_rows, self.config.hidden_size);
        let (isa, rows) = (cpu.isa(), &tape.rows.head);
        let selected = &mut tape.selected[..rows.len() * hidden];
        scatter_rows(isa, selected, rows, hidden, &mut tape.d_context[..n * hidden]);
        let d = if self.keeps_sums() { &mut tape.d_residual } else { &mut tape.d };
        selected.copy_from_slice(&d[..selected.len()]);
        scatter_rows(isa, selected, rows, hidden, &mut d[..n * hidden]);
    }

    fn embedding_backward(
        &self,
        cpu: &Cpu,
        parameters: &Parameters,
        batch: &Packed,
        tape: &mut EncoderTape,
        gradients: &mut Gradients,
    ) -> Result<(), Error> {
        let (n, hidden) = (tape.n_rows, self.config.hidden_size);
        let d = &mut tape.d[..n * hidden];
        if self.keeps_sums() {
            // The embeddings are the input of the first layer and the first residual.
            add(cpu.isa(), d, &tape.d_residual[..n * hidden]);
        }
        let dropout = RowDropout { dropout: tape.dropout, places: &tape.rows.places };
        let weight = parameters.at(&self.norm.weight);
        let saved = tape.embedded.saved(n, hidden);
        embedding::backward(cpu, weight, saved, dropout, d, &mut tape.sums);
        gradients.add_norm(cpu, &tape.sums, &self.norm);
        if let (Some(kinds), Some(first)) = (&self.kinds, self.first_kind()) {
            gradients.clear_fresh(kinds);
            tape.sums.finish_into(cpu, 2 * hidden, gradients.slot(&first));
        }
        if let Some(positions) = &self.positions {
            let first_position = self.config.first_position();
            gradients.add_positions(cpu, positions, first_position, &tape.rows.places, d);
        }
        if parameters.trains(&self.table) {
            let (pad_id, trained) = (self.config.pad_id, parameters.table().trained_rows());
            gradients.table.add_lookups(batch.pieces(), d, pad_id, &trained)?;
        }
        Ok(())
    }
}

impl Gradients {
    /// Adds the gradient of the weight of a linear map, unless the weight is frozen. `dy` and `x` are the gradient of its
    /// output and its input.
    fn add_weight(
        &mut self,
        cpu: &Cpu,
        parameters: &Parameters,
        params: &LinearParams,
        dy: &[f32],
        x: &[f32],
    ) {
        if parameters.trains(&params.weight) {
            params.linear().weight_gradient(cpu, dy, x, self.slot(&params.weight));
        }
    }

    /// Adds the three groups of column sums from the backward pass of a norm to the gradients: those of the weight of
    /// the norm, of its bias, and of the bias that was added before the norm.
    fn add_norm_and_bias(
        &mut self,
        cpu: &Cpu,
        sums: &ColumnSums,
        norm: &LinearParams,
        bias: &Range<usize>,
    ) {
        self.add_norm(cpu, sums, norm);
        sums.finish_into(cpu, 2 * norm.weight.len(), self.slot(bias));
    }

    /// Adds the first two groups of column sums from the backward pass of a norm to the gradients: those of its weight
    /// and of its bias.
    fn add_norm(&mut self, cpu: &Cpu, sums: &ColumnSums, norm: &LinearParams) {
        sums.finish_into(cpu, 0, self.slot(&norm.weight));
        sums.finish_into(cpu, norm.weight.len(), self.slot(&norm.bias));
    }

    /// Adds the gradients `d` of the rows at `places` to the gradient of a position table.
    pub(crate) fn add_positions(
        &mut self,
        cpu: &Cpu,
        table: &Range<usize>,
        first_position: usize,
        places: &[(u64, usize)],
        d: &[f32],
    ) {
        self.clear_fresh(table);
        let width = d.len() / places.len();
        let rows = self.slot(table).data;
        for (d, (_, position)) in d.chunks_exact(width).zip(places) {
            let start = (position + first_position) * width;
            add(cpu.isa(), &mut rows[start..start + width], d);
        }
    }
}
