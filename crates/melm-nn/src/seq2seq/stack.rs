//! A stack of layers: the encoder or the decoder. The layers of the decoder also attend to the output of the encoder.

use super::attention::{AttentionParams, AttentionTape};
use super::config::{FIRST_POSITION, Seq2SeqConfig, StackConfig};
use super::feed_forward::{FeedForwardParams, FeedForwardTape};
use super::pass::{Memory, Pass, Workspace};
use crate::buffer::Buffer;
use crate::device::Cpu;
use crate::dropout::{Dropout, Site};
use crate::encoder::{LinearParams, NormTape};
use crate::error::Error;
use crate::gradients::Gradients;
use crate::ops::{ColumnSums, RowDropout};
use crate::packed::Packed;
use crate::params::Parameters;
use std::ops::Range;

/// The layer number that dropout uses for the first layer of the decoder. The layers of the encoder have smaller
/// numbers.
const FIRST_DECODER_LAYER: usize = 1 << 12;

/// The ranges of the parameters of one layer.
pub(super) struct LayerParams {
    pub(super) self_attention: AttentionParams,
    /// Only the layers of the decoder have a cross-attention.
    pub(super) cross_attention: Option<AttentionParams>,
    pub(super) feed_forward: FeedForwardParams,
}

/// The ranges of the parameters of a stack, and its sizes.
pub(super) struct Stack {
    pub(super) table: Range<usize>,
    positions: Range<usize>,
    pub(super) embedding_norm: LinearParams,
    pub(super) layers: Vec<LayerParams>,
    pub(super) norm: LinearParams,
    /// The factor that embeddings of pieces are multiplied by.
    scale: f32,
    width: usize,
    pad_id: u32,
    first_layer: usize,
}

#[derive(Default)]
struct LayerTape {
    self_attention: AttentionTape,
    cross_attention: AttentionTape,
    feed_forward: FeedForwardTape,
}

/// Results of the forward pass of a stack that the backward pass needs.
#[derive(Default)]
pub(super) struct StackTape {
    /// For each row, the key of its sentence and its position in the sentence.
    places: Vec<(u64, usize)>,
    embedding: NormTape,
    layers: Vec<LayerTape>,
    last: NormTape,
    /// The hidden rows, which each block of a layer updates.
    rows: Buffer,
    work: Workspace,
    sums: ColumnSums,
}

impl StackTape {
    /// Returns the output of the stack, `[rows, width]`.
    pub(super) fn output(&self, width: usize) -> &[f32] {
        &self.last.y[..self.places.len() * width]
    }
}

/// The inputs of a stack in one pass.
#[derive(Clone, Copy)]
pub(super) struct StackInput<'a> {
    pub(super) cpu: &'a Cpu,
    pub(super) parameters: &'a Parameters,
    pub(super) batch: &'a Packed,
    pub(super) dropout: Dropout,
}

impl<'a> StackInput<'a> {
    fn pass(self, places: &'a [(u64, usize)], stack: &Stack) -> Pass<'a> {
        let Self { cpu, parameters, batch, dropout } = self;
        let (width, layer) = (stack.width, stack.first_layer);
        let dropout = RowDropout { dropout, places };
        Pass { cpu, parameters, batch, width, dropout, layer }
    }
}

impl Stack {
    pub(super) fn encoder(config: &Seq2SeqConfig, parameters: &Parameters) -> Self {
        Self::new("encoder", config, config.encoder, parameters)
    }

    pub(super) fn decoder(config: &Seq2SeqConfig, parameters: &Parameters) -> Self {
        Self::new("decoder", config, config.decoder, parameters)
    }

    fn new(name: &str, config: &Seq2SeqConfig, own: StackConfig, parameters: &Parameters) -> Self {
        let is_decoder = name == "decoder";
        let layer = |layer: usize| {
            let layer = format!("model.{name}.layers.{layer}");
            let attention = |kind: &str, is_causal| {
                AttentionParams::new(parameters, &format!("{layer}.{kind}"), own.n_heads, is_causal)
            };
            LayerParams {
                self_attention: attention("self_attn", is_decoder),
                cross_attention: is_decoder.then(|| attention("encoder_attn", false)),
                feed_forward: FeedForwardParams::new(parameters, &layer, own.inner),
            }
        };
        let range = |name: &str| parameters.span(name, name);
        let norm = |kind: &str| LinearParams::new(parameters, &format!("model.{name}.{kind}"));
        Self {
            table: range(super::SHARED),
            positions: range(&format!("model.{name}.embed_positions.weight")),
            embedding_norm: norm("layernorm_embedding"),
            layers: (0..own.n_layers).map(layer).collect(),
            norm: norm("layer_norm"),
            scale: if config.scales_embedding { (config.width as f32).sqrt() } else { 1.0 },
            width: config.width,
            pad_id: config.pad_id,
            first_layer: if is_decoder { FIRST_DECODER_LAYER } else { 0 },
        }
    }

    /// Writes the sum of a piece embedding and a position embedding to `row`.
    pub(super) fn embed(
        &self,
        parameters: &Parameters,
        piece: u32,
        position: usize,
        row: &mut [f32],
    ) {
        let width = row.len();
        let piece = &parameters.at(&self.table)[piece as usize * width..][..width];
        let position = &parameters.at(&self.positions)[(position + FIRST_POSITION) * width..];
        for ((x, piece), position) in row.iter_mut().zip(piece).zip(position) {
            *x = piece * self.scale + position;
        }
    }

    /// Runs the stack and writes its output to the tape.
    pub(super) fn forward(
        &self,
        input: StackInput<'_>,
        memory: Option<Memory<'_>>,
        tape: &mut StackTape,
    ) -> Result<(), Error> {
        let width = self.width;
        tape.places.clear();
        tape.places.extend(input.batch.places());
        tape.layers.resize_with(self.layers.len(), LayerTape::default);
        let n = tape.places.len();
        tape.rows.try_reserve(n * width)?;
        let StackTape { places, embedding, layers, last, rows, work, .. } = tape;
        let pass = input.pass(places, self);
        let h = &mut rows[..n * width];
        let pieces = input.batch.pieces().iter().zip(&*places);
        for (row, (piece, (_, position))) in h.chunks_exact_mut(width).zip(pieces) {
            self.embed(input.parameters, *piece, *position, row);
        }
        pass.norm(&self.embedding_norm, h, embedding)?;
        h.copy_from_slice(&embedding.y[..n * width]);
        self.drop_embedded(&pass, h);
        for (index, (layer, tape)) in self.layers.iter().zip(layers).enumerate() {
            let pass = pass.at_layer(self.layer_number(index));
            layer.self_attention.forward(&pass, None, h, &mut tape.self_attention, work)?;
            if let Some(cross) = &layer.cross_attention {
                let pass = pass.at_layer(self.layer_number(index) + 1);
                cross.forward(&pass, memory, h, &mut tape.cross_attention, work)?;
            }
            layer.feed_forward.forward(&pass, h, &mut tape.feed_forward, work)?;
        }
        pass.norm(&self.norm, h, last)?;
        Ok(())
    }

    /// Returns the layer number that dropout uses for a layer. Its cross-attention uses the next number.
    fn layer_number(&self, index: usize) -> usize {
        self.first_layer + 2 * index
    }

    fn drop_embedded(&self, pass: &Pass<'_>, rows: &mut [f32]) {
        let (isa, layer) = (pass.cpu.isa(), self.first_layer);
        pass.dropout.drop_rows(isa, layer, Site::Embedding, rows, self.width);
    }

    /// Takes the gradient of the output in `d`, and overwrites it. Adds the gradients of all parameters to `gradients`,
    /// and adds to the gradient of the encoder output in `memory`.
    pub(super) fn backward(
        &self,
        input: StackInput<'_>,
        mut memory: Option<(Memory<'_>, &mut [f32])>,
        tape: &mut StackTape,
        d: &mut [f32],
        gradients: &mut Gradients,
    ) -> Result<(), Error> {
        let StackTape { places, embedding, layers, last, work, sums, .. } = tape;
        let pass = input.pass(places, self);
        pass.norm_backward(&self.norm, last, d, sums, gradients);
        for (index, (layer, tape)) in self.layers.iter().zip(layers).enumerate().rev() {
            let pass = pass.at_layer(self.layer_number(index));
            layer.feed_forward.backward(&pass, d, &tape.feed_forward, work, gradients)?;
            if let (Some(cross), Some((memory, d_memory))) = (&layer.cross_attention, &mut memory) {
                let pass = pass.at_layer(self.layer_number(index) + 1);
                let seen = Some((*memory, &mut **d_memory));
                cross.backward(&pass, seen, d, &tape.cross_attention, work, gradients)?;
            }
            let own = &layer.self_attention;
            own.backward(&pass, None, d, &tape.self_attention, work, gradients)?;
        }
        self.drop_embedded(&pass, d);
        pass.norm_backward(&self.embedding_norm, embedding, d, sums, gradients);
        gradients.add_positions(input.cpu, &self.positions, FIRST_POSITION, places, d);
        if input.parameters.trains(&self.table) {
            for x in d.iter_mut() {
                *x *= self.scale;
            }
            let trained = input.parameters.table().trained_rows();
            gradients.table.add_lookups(input.batch.pieces(), d, self.pad_id, &trained)?;
        }
        Ok(())
    }
}
