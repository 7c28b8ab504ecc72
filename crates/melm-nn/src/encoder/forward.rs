//! The forward pass of the encoder.

use super::int8::{Int8Encoder, Weights};
use super::tape::{LayerTape, select_rows};
use super::{Encoder, EncoderTape, LinearParams};
use crate::architecture::FeedForward;
use crate::device::Cpu;
use crate::dropout::{Dropout, Site};
use crate::error::Error;
use crate::int8::Finish;
use crate::ops::RowDropout;
use crate::ops::attention::{Attention, Seen};
use crate::ops::embedding::{self, Tables};
use crate::ops::norm::{self, Affine, ResidualInputs, ResidualRows};
use crate::ops::rotary::Angles;
use crate::ops::{gated, gelu};
use crate::packed::Packed;
use crate::params::Parameters;

impl Encoder {
    /// Encodes a batch. Afterwards, [`EncoderTape::hidden`] returns the hidden states at `head_rows`, the rows that the
    /// head reads. The last layer computes only these.
    ///
    /// # Errors
    /// Fails if a piece is not in the vocabulary, or if a sentence is empty or too long for the model.
    pub(crate) fn forward(
        &self,
        cpu: &Cpu,
        parameters: &Parameters,
        batch: &Packed,
        head_rows: &[usize],
        dropout: Dropout,
        tape: &mut EncoderTape,
    ) -> Result<(), Error> {
        let weights = Weights { parameters, int8: None };
        self.forward_with(cpu, weights, batch, head_rows, dropout, tape)
    }

    /// Like [`Self::forward`], with 8-bit weights and without dropout.
    ///
    /// # Errors
    /// As [`Self::forward`].
    pub(crate) fn forward_int8(
        &self,
        cpu: &Cpu,
        parameters: &Parameters,
        int8: &Int8Encoder,
        batch: &Packed,
        head_rows: &[usize],
        tape: &mut EncoderTape,
    ) -> Result<(), Error> {
        let weights = Weights { parameters, int8: Some(int8) };
        self.forward_with(cpu, weights, batch, head_rows, Dropout::NONE, tape)
    }

    fn forward_with(
        &self,
        cpu: &Cpu,
        weights: Weights<'_>,
        batch: &Packed,
        head_rows: &[usize],
        dropout: Dropout,
        tape: &mut EncoderTape,
    ) -> Result<(), Error> {
        self.check(batch)?;
        tape.start(&self.config, batch, head_rows, dropout)?;
        if head_rows.is_empty() {
            return Ok(());
        }
        self.embed(cpu, weights.parameters, batch, tape);
        for layer in 0..self.layers.len() {
            self.forward_layer(cpu, weights, layer, tape);
        }
        Ok(())
    }

    fn affine<'a>(&self, parameters: &'a Parameters, norm: &LinearParams) -> Affine<'a> {
        Affine {
            weight: parameters.at(&norm.weight),
            bias: parameters.at(&norm.bias),
            eps: self.config.layer_norm_eps,
        }
    }

    pub(super) fn attention<'a>(
        &self,
        layer: usize,
        angles: &'a Angles,
        dropout: Dropout,
    ) -> Attention<'a> {
        Attention {
            n_heads: self.config.n_heads,
            width: self.config.hidden_size,
            seen: self.config.window(layer).map_or(Seen::All, Seen::Window),
            angles: angles.layer(&self.config, layer),
            layer,
            dropout,
        }
    }

    fn embed(&self, cpu: &Cpu, parameters: &Parameters, batch: &Packed, tape: &mut EncoderTape) {
        let tables = Tables {
            pieces: parameters.at(&self.table),
            positions: self.positions.as_ref().map(|range| parameters.at(range)),
            kinds: self.kinds.as_ref().map(|range| parameters.at(range)),
            first_position: self.config.first_position(),
        };
        let affine = self.affine(parameters, &self.norm);
        let dropout = RowDropout { dropout: tape.dropout, places: &tape.rows.places };
        let out = tape.embedded.output(batch.n_rows(), self.config.hidden_size);
        embedding::forward(cpu, batch.pieces(), tables, affine, dropout, out);
        if self.keeps_sums() {
            let len = batch.n_rows() * self.config.hidden_size;
            tape.residual[..len].copy_from_slice(&tape.embedded.y[..len]);
        }
    }

    fn forward_layer(&self, cpu: &Cpu, weights: Weights<'_>, layer: usize, tape: &mut EncoderTape) {
        let slot = tape.slot(layer);
        // The tape of this layer is moved out of the list, because the tape of the layer before is borrowed at the same
        // time.
        let mut own = std::mem::take(&mut tape.layers[slot]);
        self.forward_attention(cpu, weights, layer, &mut own, tape);
        self.forward_feed_forward(cpu, weights, layer, &mut own, tape);
        tape.layers[slot] = own;
    }

    /// Returns the rows that are added to the output of a part: its input `x`, or the running sum.
    fn residual<'a>(&self, x: &'a [f32], sum: &'a mut [f32]) -> ResidualRows<'a> {
        if self.keeps_sums() {
            ResidualRows::Running(&mut sum[..x.len()])
        } else {
            ResidualRows::Fixed(x)
        }
    }

    /// Copies some rows of the residual to `selected`: of the input `x`, or of the running sum, which keeps these rows only.
    fn select_residual(&self, rows: &[usize], x: &[f32], sum: &mut [f32], selected: &mut [f32]) {
        let hidden = self.config.hidden_size;
        if self.keeps_sums() {
            select_rows(sum, rows, hidden, selected);
            sum[..selected.len()].copy_from_slice(selected);
        } else {
            select_rows(x, rows, hidden, selected);
        }
    }

    fn forward_attention(
        &self,
        cpu: &Cpu,
        weights: Weights<'_>,
        layer: usize,
        own: &mut LayerTape,
        tape: &mut EncoderTape,
    ) {
        let parameters = weights.parameters;
        let int8 = weights.layer(layer);
        let (n, hidden) = (tape.n_rows, self.config.hidden_size);
        let params = &self.layers[layer];
        let before = layer.checked_sub(1).map(|layer| tape.slot(layer));
        let x = match before {
            None => &tape.embedded.y[..n * hidden],
            Some(before) => &tape.layers[before].output.y[..n * hidden],
        };
        let is_last = tape.rows.is_last(layer);

        let qkv = &mut own.qkv[..n * 3 * hidden];
        let rows = &mut tape.quantized;
        // Attention adds the bias, unless the product has added it.
        let mut bias = parameters.at(&params.qkv.bias);
        match int8 {
            None => params.qkv.linear().forward(cpu, x, parameters.at(&params.qkv.weight), qkv),
            Some(int8) => {
                rows.set(cpu.isa(), x, hidden);
                int8.qkv.forward(cpu, rows, Finish::with_bias(bias), qkv);
                bias = &[];
            }
        }
        let probabilities = &mut own.probabilities[..tape.layout.n_probabilities()];
        let attention = self.attention(layer, &tape.angles, tape.dropout);
        let context = if is_last { &mut tape.narrow } else { &mut own.context };
        let context = &mut context[..n * hidden];
        attention.forward_joined(cpu, &tape.layout, qkv, bias, probabilities, context);

        // The rest of the last layer is computed only at the rows that the head reads.
        let n = tape.rows.after_attention(layer).len();
        let x = if is_last {
            let (rows, selected) = (&tape.rows.head, &mut tape.selected[..n * hidden]);
            select_rows(&tape.narrow, rows, hidden, &mut own.context[..n * hidden]);
            self.select_residual(rows, x, &mut tape.residual, selected);
            selected
        } else {
            x
        };
        let context = &own.context[..n * hidden];
        let narrow = &mut tape.narrow[..n * hidden];
        let map = int8.map(|layer| &layer.attention_output);
        weights.multiply(cpu, &params.attention_output, map, context, rows, narrow);
        let bias = parameters.at(&params.attention_output.bias);
        let residual = self.residual(x, &mut tape.residual);
        let inputs = ResidualInputs { x: narrow, bias, residual };
        let affine = self.affine(parameters, &params.attention_norm);
        let places = tape.rows.after_attention(layer);
        let dropout = RowDropout { dropout: tape.dropout, places };
        let mask = |row| dropout.mask(layer, Site::AttentionOutput, row);
        norm::forward(cpu, inputs, affine, mask, own.attended.output(n, hidden));
    }

    /// Computes the feed-forward part: a product, the GELU and a second product.
    fn forward_feed_forward(
        &self,
        cpu: &Cpu,
        weights: Weights<'_>,
        layer: usize,
        own: &mut LayerTape,
        tape: &mut EncoderTape,
    ) {
        let parameters = weights.parameters;
        let int8 = weights.layer(layer);
        let places = tape.rows.after_attention(layer);
        let dropout = RowDropout { dropout: tape.dropout, places };
        let (n, hidden) = (places.len(), self.config.hidden_size);
        let params = &self.layers[layer];
        let x = &own.attended.y[..n * hidden];
        let width = self.config.intermediate_size;
        let before = &mut own.inner[..n * params.intermediate.n_outputs];
        let (inner, narrow) = (&mut tape.inner[..n * width], &mut tape.narrow[..n * hidden]);
        let rows = &mut tape.quantized;
        match (self.config.architecture().feed_forward, int8) {
            (FeedForward::Plain, Some(int8)) => {
                let bias = parameters.at(&params.intermediate.bias);
                int8.feed_forward(cpu, bias, x, rows, inner, narrow);
            }
            (FeedForward::Plain, None) => {
                weights.multiply(cpu, &params.intermediate, None, x, rows, before);
                let bias = parameters.at(&params.intermediate.bias);
                gelu::forward(cpu, width, bias, before, inner);
                weights.multiply(cpu, &params.output, None, inner, rows, narrow);
            }
            (FeedForward::Gated, int8) => {
                let map = int8.map(|layer| &layer.intermediate);
                weights.multiply(cpu, &params.intermediate, map, x, rows, before);
                let mask = |row| dropout.mask(layer, Site::Inner, row);
                gated::forward(cpu, width, before, mask, inner);
                let map = int8.map(|layer| &layer.output);
                weights.multiply(cpu, &params.output, map, inner, rows, narrow);
            }
        }
        let bias = parameters.at(&params.output.bias);
        let residual = self.residual(x, &mut tape.residual);
        let inputs = ResidualInputs { x: narrow, bias, residual };
        let affine = self.affine(parameters, &params.output_norm);
        let mask = |row| dropout.mask(layer, Site::Output, row);
        norm::forward(cpu, inputs, affine, mask, own.output.output(n, hidden));
    }
}
