//! The forward pass of the encoder.

use super::tape::LayerTape;
use super::{Encoder, EncoderTape, LayerParams, LinearParams};
use crate::device::Cpu;
use crate::dropout::{Dropout, Site};
use crate::error::Error;
use crate::ops::RowDropout;
use crate::ops::attention::Attention;
use crate::ops::embedding::{self, Tables};
use crate::ops::gelu;
use crate::ops::norm::{self, Affine, ResidualInputs};
use crate::packed::Packed;
use crate::params::Parameters;

impl Encoder {
    /// Encodes a batch. Afterwards, [`EncoderTape::hidden`] returns the hidden states.
    ///
    /// # Errors
    /// Fails if a piece is not in the vocabulary, or if a sentence is empty or too long for the model.
    pub(crate) fn forward(
        &self,
        cpu: &Cpu,
        parameters: &Parameters,
        batch: &Packed,
        dropout: Dropout,
        tape: &mut EncoderTape,
    ) -> Result<(), Error> {
        self.check(batch)?;
        tape.start(&self.config, batch, dropout)?;
        self.embed(cpu, parameters, batch, tape);
        for layer in 0..self.layers.len() {
            self.forward_layer(cpu, parameters, layer, tape);
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

    pub(super) fn attention(&self, layer: usize, dropout: Dropout) -> Attention {
        let (n_heads, width) = (self.config.n_heads, self.config.hidden_size);
        Attention { n_heads, width, is_causal: false, layer, dropout }
    }

    fn embed(&self, cpu: &Cpu, parameters: &Parameters, batch: &Packed, tape: &mut EncoderTape) {
        let tables = Tables {
            pieces: parameters.at(&self.table),
            positions: parameters.at(&self.positions),
            kinds: self.kinds.as_ref().map(|range| parameters.at(range)),
            first_position: self.config.first_position(),
        };
        let affine = self.affine(parameters, &self.norm);
        let dropout = RowDropout { dropout: tape.dropout, places: &tape.places };
        let out = tape.embedded.output(batch.n_rows(), self.config.hidden_size);
        embedding::forward(cpu, batch.pieces(), tables, affine, dropout, out);
    }

    fn forward_layer(
        &self,
        cpu: &Cpu,
        parameters: &Parameters,
        layer: usize,
        tape: &mut EncoderTape,
    ) {
        let (n, hidden) = (tape.n_rows, self.config.hidden_size);
        let (slot, before) = (tape.slot(layer), layer.checked_sub(1).map(|layer| tape.slot(layer)));
        let params = &self.layers[layer];
        // The tape of this layer is moved out of the list, because the tape of the layer before is borrowed at the same
        // time.
        let mut own = std::mem::take(&mut tape.layers[slot]);
        let x = match before {
            None => &tape.embedded.y[..n * hidden],
            Some(before) => &tape.layers[before].output.y[..n * hidden],
        };
        let narrow = &mut tape.narrow[..n * hidden];
        let dropout = RowDropout { dropout: tape.dropout, places: &tape.places };

        let qkv = &mut own.qkv[..n * 3 * hidden];
        params.qkv.linear().forward(cpu, x, parameters.at(&params.qkv.weight), qkv);
        let probabilities = &mut own.probabilities[..tape.layout.n_probabilities()];
        let context = &mut own.context[..n * hidden];
        let bias = parameters.at(&params.qkv.bias);
        let attention = self.attention(layer, tape.dropout);
        attention.forward_joined(cpu, &tape.layout, qkv, bias, probabilities, context);

        let weight = parameters.at(&params.attention_output.weight);
        params.attention_output.linear().forward(cpu, context, weight, narrow);
        let bias = parameters.at(&params.attention_output.bias);
        let inputs = ResidualInputs { x: narrow, bias, residual: x };
        let affine = self.affine(parameters, &params.attention_norm);
        let mask = |row| dropout.mask(layer, Site::AttentionOutput, row);
        norm::forward(cpu, inputs, affine, mask, own.attended.output(n, hidden));

        self.forward_inner(cpu, parameters, params, &mut own, &mut tape.inner, narrow);
        let bias = parameters.at(&params.output.bias);
        let residual = &own.attended.y[..n * hidden];
        let inputs = ResidualInputs { x: narrow, bias, residual };
        let affine = self.affine(parameters, &params.output_norm);
        let mask = |row| dropout.mask(layer, Site::Output, row);
        norm::forward(cpu, inputs, affine, mask, own.output.output(n, hidden));
        tape.layers[slot] = own;
    }

    /// Computes the feed-forward layers: a product, the GELU and a second product. Reads `own.attended` and writes
    /// `out`.
    fn forward_inner(
        &self,
        cpu: &Cpu,
        parameters: &Parameters,
        params: &LayerParams,
        own: &mut LayerTape,
        inner: &mut [f32],
        out: &mut [f32],
    ) {
        let x = &own.attended.y[..out.len()];
        let len = out.len() / self.config.hidden_size * self.config.intermediate_size;
        let (before, inner) = (&mut own.inner[..len], &mut inner[..len]);
        let weight = parameters.at(&params.intermediate.weight);
        params.intermediate.linear().forward(cpu, x, weight, before);
        gelu::forward(cpu, parameters.at(&params.intermediate.bias), before, inner);
        params.output.linear().forward(cpu, inner, parameters.at(&params.output.weight), out);
    }
}
