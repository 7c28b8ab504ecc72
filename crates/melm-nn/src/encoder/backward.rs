//! The backward pass, in the forward pass's order reversed.

use super::{Encoder, EncoderTape, LinearParams};
use crate::device::Cpu;
use crate::dropout::Site;
use crate::gradients::Gradients;
use crate::ops::embedding;
use crate::ops::gelu;
use crate::ops::linear::Accumulator;
use crate::ops::norm;
use crate::ops::{ColumnSums, add};
use crate::packed::Packed;
use crate::params::Parameters;

impl Encoder {
    /// From the gradient in [`EncoderTape::d_hidden`] to that of every parameter that is trained, added to `gradients`.
    ///
    /// `batch` is the one of the forward pass. What was in [`EncoderTape::d_hidden`] is used up.
    pub fn backward(
        &self,
        cpu: &Cpu,
        parameters: &Parameters,
        batch: &Packed,
        (tape, gradients): (&mut EncoderTape, &mut Gradients),
    ) {
        for layer in (0..self.layers.len()).rev() {
            self.feed_forward_backward(cpu, parameters, layer, (tape, gradients));
            self.attention_backward(cpu, parameters, (batch, layer), (tape, gradients));
        }
        self.embedding_backward(cpu, parameters, batch, (tape, gradients));
    }

    fn feed_forward_backward(
        &self,
        cpu: &Cpu,
        parameters: &Parameters,
        layer: usize,
        (tape, gradients): (&mut EncoderTape, &mut Gradients),
    ) {
        let (n, hidden, inner) =
            (tape.n_rows, self.config.hidden_size, self.config.intermediate_size);
        let place = &self.layers[layer];
        let own = &tape.layers[layer];
        let (dropout, places) = (tape.dropout, &tape.places);
        let mask = |row: usize| dropout.row(layer, Site::Output, places[row].0, places[row].1);
        let (d, dx) = (&mut tape.d[..n * hidden], &mut tape.narrow[..n * hidden]);
        let weight = parameters.at(&place.output_norm.weight);
        let normed = (&own.output.normed[..n * hidden], &own.output.scale[..n]);
        let shape = norm::backward(cpu, weight, normed, mask, (d, dx, &mut tape.sums));
        gradients.norm_and_bias(cpu, (&tape.sums, shape), (&place.output_norm, &place.output.bias));

        let (up, down) = self.feed_forward();
        let (d_inner, g) = (&mut tape.d_inner[..n * inner], &mut tape.inner[..n * inner]);
        let weight = parameters.at(&place.output.weight);
        down.backward(cpu, n, (dx, weight), Accumulator { data: d_inner, accumulates: false });
        let before = &own.inner[..n * inner];
        let shape = gelu::backward(cpu, before, d_inner, g, (&mut tape.sums, inner));
        tape.sums.finish_into(cpu, shape, 0, gradients.slot(&place.intermediate.bias));
        if parameters.trains(&place.output.weight) {
            down.weight_gradient(cpu, n, (dx, g), gradients.slot(&place.output.weight));
        }
        let x = &own.attended.y[..n * hidden];
        if parameters.trains(&place.intermediate.weight) {
            up.weight_gradient(cpu, n, (d_inner, x), gradients.slot(&place.intermediate.weight));
        }
        let weight = parameters.at(&place.intermediate.weight);
        up.backward(cpu, n, (d_inner, weight), Accumulator { data: d, accumulates: true });
    }

    fn attention_backward(
        &self,
        cpu: &Cpu,
        parameters: &Parameters,
        (batch, layer): (&Packed, usize),
        (tape, gradients): (&mut EncoderTape, &mut Gradients),
    ) {
        let (n, hidden) = (tape.n_rows, self.config.hidden_size);
        let place = &self.layers[layer];
        let own = &tape.layers[layer];
        let (dropout, places) = (tape.dropout, &tape.places);
        let mask =
            |row: usize| dropout.row(layer, Site::AttentionOutput, places[row].0, places[row].1);
        let (d, dx) = (&mut tape.d[..n * hidden], &mut tape.narrow[..n * hidden]);
        let weight = parameters.at(&place.attention_norm.weight);
        let normed = (&own.attended.normed[..n * hidden], &own.attended.scale[..n]);
        let shape = norm::backward(cpu, weight, normed, mask, (d, dx, &mut tape.sums));
        gradients.norm_and_bias(
            cpu,
            (&tape.sums, shape),
            (&place.attention_norm, &place.attention_output.bias),
        );

        let d_context = &mut tape.d_context[..n * hidden];
        let weight = parameters.at(&place.attention_output.weight);
        self.linear(1, 1).backward(
            cpu,
            n,
            (dx, weight),
            Accumulator { data: d_context, accumulates: false },
        );
        let context = &own.context[..n * hidden];
        if parameters.trains(&place.attention_output.weight) {
            let slot = gradients.slot(&place.attention_output.weight);
            self.linear(1, 1).weight_gradient(cpu, n, (dx, context), slot);
        }
        let d_qkv = &mut tape.d_qkv[..n * 3 * hidden];
        let saved = (&own.qkv[..n * 3 * hidden], &own.probabilities[..], &*d_context);
        self.attention(layer, dropout).backward(cpu, (batch, &tape.cuts), saved, d_qkv);
        let shape = tape.sums.of_rows(cpu, d_qkv, 3 * hidden);
        tape.sums.finish_into(cpu, shape, 0, gradients.slot(&place.qkv.bias));
        let x = match layer.checked_sub(1) {
            None => &tape.embedded.y[..n * hidden],
            Some(before) => &tape.layers[before].output.y[..n * hidden],
        };
        if parameters.trains(&place.qkv.weight) {
            self.linear(1, 3).weight_gradient(
                cpu,
                n,
                (d_qkv, x),
                gradients.slot(&place.qkv.weight),
            );
        }
        let weight = parameters.at(&place.qkv.weight);
        self.linear(1, 3).backward(
            cpu,
            n,
            (d_qkv, weight),
            Accumulator { data: d, accumulates: true },
        );
    }

    fn embedding_backward(
        &self,
        cpu: &Cpu,
        parameters: &Parameters,
        batch: &Packed,
        (tape, gradients): (&mut EncoderTape, &mut Gradients),
    ) {
        let (n, hidden) = (tape.n_rows, self.config.hidden_size);
        let d = &mut tape.d[..n * hidden];
        let normed = (&tape.embedded.normed[..n * hidden], &tape.embedded.scale[..n]);
        let weight = parameters.at(&self.norm.weight);
        let shape = embedding::backward(
            cpu,
            (weight, tape.dropout, &tape.places),
            normed,
            (d, &mut tape.sums),
        );
        let first_kind = self.kinds.start..self.kinds.start + hidden;
        gradients.clear_fresh(&self.kinds);
        gradients.norm_and_bias(cpu, (&tape.sums, shape), (&self.norm, &first_kind));
        gradients.clear_fresh(&self.positions);
        let positions = gradients.slot(&self.positions).data;
        for (d, (_, position)) in d.chunks_exact(hidden).zip(&tape.places) {
            let at = (position + self.config.pad_id as usize + 1) * hidden;
            add(cpu.isa(), &mut positions[at..at + hidden], d);
        }
        if parameters.trains(&self.table) {
            gradients.table.add_lookups(batch.pieces(), d, self.config.pad_id);
        }
    }
}

impl Gradients {
    /// The three sums that a norm's backward pass leaves: its weight, its bias, and the bias before it.
    pub(crate) fn norm_and_bias(
        &mut self,
        cpu: &Cpu,
        (sums, shape): (&ColumnSums, (usize, usize)),
        (norm, bias): (&LinearParams, &std::ops::Range<usize>),
    ) {
        let width = norm.weight.len();
        sums.finish_into(cpu, shape, 0, self.slot(&norm.weight));
        sums.finish_into(cpu, shape, width, self.slot(&norm.bias));
        sums.finish_into(cpu, shape, 2 * width, self.slot(bias));
    }
}
