//! The forward pass.

use super::tape::LayerTape;
use super::{Encoder, EncoderTape, LayerParams, LinearParams};
use crate::device::Cpu;
use crate::dropout::{Dropout, Site};
use crate::error::Error;
use crate::ops::attention::Attention;
use crate::ops::embedding::{self, Tables};
use crate::ops::gelu;
use crate::ops::norm::{self, Affine};
use crate::packed::Packed;
use crate::params::Parameters;

impl Encoder {
    /// Encodes a batch; the rows are in [`EncoderTape::hidden`].
    pub fn forward(
        &self,
        cpu: &Cpu,
        parameters: &Parameters,
        (batch, dropout): (&Packed, Dropout),
        tape: &mut EncoderTape,
    ) -> Result<(), Error> {
        batch.check(&self.config)?;
        tape.start(&self.config, batch, dropout);
        self.embed(cpu, parameters, batch, tape);
        for layer in 0..self.layers.len() {
            self.forward_layer(cpu, parameters, (batch, layer), tape);
        }
        Ok(())
    }

    pub(super) fn affine<'a>(
        &self,
        parameters: &'a Parameters,
        place: &LinearParams,
    ) -> Affine<'a> {
        Affine {
            weight: parameters.at(&place.weight),
            bias: parameters.at(&place.bias),
            eps: self.config.layer_norm_eps,
        }
    }

    pub(super) fn attention(&self, layer: usize, dropout: Dropout) -> Attention {
        Attention { n_heads: self.config.n_heads, hidden: self.config.hidden_size, layer, dropout }
    }

    fn embed(&self, cpu: &Cpu, parameters: &Parameters, batch: &Packed, tape: &mut EncoderTape) {
        let tables = Tables {
            pieces: parameters.at(&self.table),
            positions: parameters.at(&self.positions),
            kind: parameters.at(&self.kinds),
            // Hugging Face counts positions from one past the padding piece's id.
            first_position: self.config.pad_id as usize + 1,
        };
        let affine = self.affine(parameters, &self.norm);
        let out = tape.embedded.out(batch.n_rows(), self.config.hidden_size);
        embedding::forward(cpu, (batch, &tape.places), (tables, affine, tape.dropout), out);
    }

    fn forward_layer(
        &self,
        cpu: &Cpu,
        parameters: &Parameters,
        (batch, layer): (&Packed, usize),
        tape: &mut EncoderTape,
    ) {
        let (n, hidden) = (batch.n_rows(), self.config.hidden_size);
        let (at, before) = (tape.slot(layer), layer.checked_sub(1).map(|layer| tape.slot(layer)));
        let place = &self.layers[layer];
        let mut taken = std::mem::take(&mut tape.layers[at]);
        let own = &mut taken;
        let x = match before {
            None => &tape.embedded.y[..n * hidden],
            Some(before) => &tape.layers[before].output.y[..n * hidden],
        };
        let narrow = &mut tape.narrow[..n * hidden];
        let (dropout, places) = (tape.dropout, &tape.places);
        let mask = |site| move |row: usize| dropout.row(layer, site, places[row].0, places[row].1);

        let qkv = &mut own.qkv[..n * 3 * hidden];
        self.linear(1, 3).forward(cpu, n, (x, parameters.at(&place.qkv.weight)), qkv);
        let probabilities = &mut own.probabilities[..tape.cuts.n_probabilities()];
        let context = &mut own.context[..n * hidden];
        let bias = parameters.at(&place.qkv.bias);
        self.attention(layer, dropout).forward(
            cpu,
            (batch, &tape.cuts),
            (qkv, bias),
            (probabilities, context),
        );

        let weight = parameters.at(&place.attention_output.weight);
        self.linear(1, 1).forward(cpu, n, (context, weight), narrow);
        let bias = parameters.at(&place.attention_output.bias);
        let affine = self.affine(parameters, &place.attention_norm);
        norm::forward(
            cpu,
            (narrow, bias, x),
            affine,
            mask(Site::AttentionOutput),
            own.attended.out(n, hidden),
        );

        self.forward_inner(cpu, parameters, (n, place), own, (&mut tape.inner, narrow));
        let bias = parameters.at(&place.output.bias);
        let affine = self.affine(parameters, &place.output_norm);
        let x = &own.attended.y[..n * hidden];
        norm::forward(
            cpu,
            (narrow, bias, x),
            affine,
            mask(Site::Output),
            own.output.out(n, hidden),
        );
        tape.layers[at] = taken;
    }

    /// The two products of the feed-forward part with the gelu between them.
    fn forward_inner(
        &self,
        cpu: &Cpu,
        parameters: &Parameters,
        (n, place): (usize, &LayerParams),
        own: &mut LayerTape,
        (inner, narrow): (&mut [f32], &mut [f32]),
    ) {
        let (up, down) = self.feed_forward();
        let x = &own.attended.y[..n * self.config.hidden_size];
        let len = n * self.config.intermediate_size;
        let before = &mut own.inner[..len];
        let inner = &mut inner[..len];
        up.forward(cpu, n, (x, parameters.at(&place.intermediate.weight)), before);
        gelu::forward(cpu, parameters.at(&place.intermediate.bias), before, inner);
        down.forward(cpu, n, (inner, parameters.at(&place.output.weight)), narrow);
    }
}
