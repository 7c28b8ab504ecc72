//! A stack of layers: the encoder, or the decoder, whose layers also look at the encoder's rows.

use super::attention::{AttentionParams, AttentionTape};
use super::config::{FIRST_POSITION, Seq2SeqConfig, StackConfig};
use super::feed_forward::{FeedForwardParams, FeedForwardTape};
use super::pass::{Memory, Pass, Work};
use crate::buffer::Buffer;
use crate::device::Cpu;
use crate::dropout::{Dropout, Site};
use crate::encoder::{LinearParams, NormTape};
use crate::gradients::Gradients;
use crate::ops::norm::drop_row;
use crate::ops::{ColumnSums, add};
use crate::packed::Packed;
use crate::params::Parameters;
use std::ops::Range;

/// Dropout of the decoder is drawn at layers from here on, the encoder's below: no model is this deep.
const DECODER: usize = 1 << 12;

pub(super) struct LayerParams {
    pub(super) own: AttentionParams,
    pub(super) cross: Option<AttentionParams>,
    pub(super) feed_forward: FeedForwardParams,
}

/// Where a stack's numbers are.
pub(super) struct Stack {
    pub(super) table: Range<usize>,
    pub(super) positions: Range<usize>,
    pub(super) embedding_norm: LinearParams,
    pub(super) layers: Vec<LayerParams>,
    pub(super) norm: LinearParams,
    pub(super) scale: f32,
    pad_id: u32,
    first_layer: usize,
}

#[derive(Default)]
struct LayerTape {
    own: AttentionTape,
    cross: AttentionTape,
    feed_forward: FeedForwardTape,
}

/// What a stack's forward pass leaves.
#[derive(Default)]
pub(super) struct StackTape {
    pub(super) places: Vec<(u64, usize)>,
    embedding: NormTape,
    layers: Vec<LayerTape>,
    last: NormTape,
    /// The rows between parts; in the backward pass their gradient.
    rows: Buffer,
    work: Work,
    sums: ColumnSums,
}

impl StackTape {
    /// What the stack made, `[rows, width]`.
    pub(super) fn made(&self, width: usize) -> &[f32] {
        &self.last.y[..self.places.len() * width]
    }
}

impl Stack {
    pub(super) fn encoder(config: &Seq2SeqConfig, parameters: &Parameters) -> Self {
        Self::of("encoder", (config, config.encoder), parameters)
    }

    pub(super) fn decoder(config: &Seq2SeqConfig, parameters: &Parameters) -> Self {
        Self::of("decoder", (config, config.decoder), parameters)
    }

    fn of(
        name: &str,
        (config, own): (&Seq2SeqConfig, StackConfig),
        parameters: &Parameters,
    ) -> Self {
        let is_decoder = name == "decoder";
        let layer = |layer: usize| {
            let layer = format!("model.{name}.layers.{layer}");
            let attention = |kind: &str, is_causal| {
                AttentionParams::of(parameters, &format!("{layer}.{kind}"), own.n_heads, is_causal)
            };
            LayerParams {
                own: attention("self_attn", is_decoder),
                cross: is_decoder.then(|| attention("encoder_attn", false)),
                feed_forward: FeedForwardParams::of(parameters, &layer, own.inner),
            }
        };
        let place = |name: &str| parameters.span(name, name);
        Self {
            table: place(super::SHARED),
            positions: place(&format!("model.{name}.embed_positions.weight")),
            embedding_norm: LinearParams::of(
                parameters,
                &format!("model.{name}.layernorm_embedding"),
            ),
            layers: (0..own.n_layers).map(layer).collect(),
            norm: LinearParams::of(parameters, &format!("model.{name}.layer_norm")),
            scale: if config.scales_embedding { (config.width as f32).sqrt() } else { 1.0 },
            pad_id: config.pad_id,
            first_layer: if is_decoder { DECODER } else { 0 },
        }
    }

    /// The sum of a piece's row and a position's.
    pub(super) fn embed(
        &self,
        parameters: &Parameters,
        (piece, position): (u32, usize),
        row: &mut [f32],
    ) {
        let width = row.len();
        let piece = &parameters.at(&self.table)[piece as usize * width..][..width];
        let position = &parameters.at(&self.positions)[(position + FIRST_POSITION) * width..];
        for ((x, piece), position) in row.iter_mut().zip(piece).zip(position) {
            *x = piece * self.scale + position;
        }
    }

    /// The rows that the stack makes, in the tape.
    pub(super) fn forward(
        &self,
        (cpu, parameters): (&Cpu, &Parameters),
        (batch, memory): (&Packed, Option<Memory<'_>>),
        (width, dropout): (usize, Dropout),
        tape: &mut StackTape,
    ) {
        tape.places.clear();
        tape.places.extend(batch.places());
        tape.layers.resize_with(self.layers.len(), LayerTape::default);
        let n = tape.places.len();
        tape.rows.reserve(n * width);
        let StackTape { places, embedding, layers, last, rows, work, .. } = tape;
        let pass = Pass { cpu, parameters, batch, places, width, dropout, layer: self.first_layer };
        let h = &mut rows[..n * width];
        for ((row, piece), place) in h.chunks_exact_mut(width).zip(batch.pieces()).zip(&*places) {
            self.embed(parameters, (*piece, place.1), row);
        }
        pass.norm(&self.embedding_norm, h, embedding);
        h.copy_from_slice(&embedding.y[..n * width]);
        self.drop_embedded(&pass, h);
        for (index, (layer, tape)) in self.layers.iter().zip(layers).enumerate() {
            let pass = pass.at_layer(self.number(index));
            layer.own.forward(&pass, None, h, (&mut tape.own, work));
            if let Some(cross) = &layer.cross {
                let pass = pass.at_layer(self.number(index) + 1);
                cross.forward(&pass, memory, h, (&mut tape.cross, work));
            }
            layer.feed_forward.forward(&pass, h, (&mut tape.feed_forward, work));
        }
        pass.norm(&self.norm, h, last);
    }

    /// Where a layer's dropout is drawn; that of its attention to the memory beside it.
    fn number(&self, layer: usize) -> usize {
        self.first_layer + 2 * layer
    }

    fn drop_embedded(&self, pass: &Pass<'_>, rows: &mut [f32]) {
        for (row, (key, position)) in rows.chunks_exact_mut(pass.width).zip(pass.places) {
            let mask = pass.dropout.row(self.first_layer, Site::Embedding, *key, *position);
            drop_row(pass.cpu.isa(), mask, row);
        }
    }

    /// From the gradient of what the stack made, in `d`, which is used up, to that of every parameter and of the memory.
    pub(super) fn backward(
        &self,
        (cpu, parameters): (&Cpu, &Parameters),
        (batch, mut memory): (&Packed, Option<(Memory<'_>, &mut [f32])>),
        (dropout, tape): (Dropout, &mut StackTape),
        (d, gradients): (&mut [f32], &mut Gradients),
    ) {
        let StackTape { places, embedding, layers, last, work, sums, .. } = tape;
        let width = d.len() / places.len();
        let pass = Pass { cpu, parameters, batch, places, width, dropout, layer: self.first_layer };
        pass.norm_backward(&self.norm, (last, d), (sums, gradients));
        for (index, (layer, tape)) in self.layers.iter().zip(layers).enumerate().rev() {
            let pass = pass.at_layer(self.number(index));
            layer.feed_forward.backward(&pass, d, (&tape.feed_forward, work), gradients);
            if let (Some(cross), Some((memory, d_memory))) = (&layer.cross, &mut memory) {
                let pass = pass.at_layer(self.number(index) + 1);
                let seen = Some((*memory, &mut **d_memory));
                cross.backward(&pass, seen, d, (&tape.cross, work), gradients);
            }
            layer.own.backward(&pass, None, d, (&tape.own, work), gradients);
        }
        self.drop_embedded(&pass, d);
        pass.norm_backward(&self.embedding_norm, (embedding, d), (sums, gradients));
        gradients.clear_fresh(&self.positions);
        let positions = gradients.slot(&self.positions).data;
        for (d, (_, position)) in d.chunks_exact(width).zip(&*places) {
            let at = (position + FIRST_POSITION) * width;
            add(cpu.isa(), &mut positions[at..at + width], d);
        }
        if parameters.trains(&self.table) {
            for x in d.iter_mut() {
                *x *= self.scale;
            }
            gradients.table.add_lookups(batch.pieces(), d, self.pad_id);
        }
    }
}
