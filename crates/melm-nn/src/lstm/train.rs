//! Learning: the likelihood of every next token, and its gradient.

use super::LstmLm;
use super::batch::ByTime;
use super::layer::LayerTape;
use crate::buffer::Buffer;
use crate::device::{Cpu, Device};
use crate::dropout::{Dropout, Site};
use crate::error::Error;
use crate::gradients::Gradients;
use crate::ops::linear::{Accumulator, Linear};
use crate::ops::norm::drop_row;
use crate::ops::{ColumnSums, cross_entropy};
use crate::packed::Packed;

/// Working memory of a training.
#[derive(Default)]
pub struct LstmTape {
    batch: ByTime,
    /// What each layer reads, and after the last what the output matrix reads: rows after dropout.
    inputs: Vec<Buffer>,
    layers: Vec<LayerTape>,
    /// Scores of every token at every row, then their gradient.
    scores: Buffer,
    losses: Buffer,
    d: Buffer,
    dx: Buffer,
    sums: ColumnSums,
}

impl LstmTape {
    fn start(&mut self, model: &LstmLm, batch: &Packed) {
        self.batch.set(batch);
        self.inputs.resize_with(model.layers.len() + 1, Buffer::default);
        self.layers.resize_with(model.layers.len(), LayerTape::default);
        let n = self.batch.n_rows();
        let widest = model.config.embedding_size.max(model.config.hidden_size);
        for buffer in self.inputs.iter_mut().chain([&mut self.d, &mut self.dx]) {
            buffer.reserve(n * widest);
        }
        self.scores.reserve(n * model.config.vocab_size);
        self.losses.reserve(n);
    }
}

impl ByTime {
    /// Applies the dropout of a layer's input to its rows, or to their gradient.
    fn drop(
        &self,
        cpu: &Cpu,
        (layer, dropout): (usize, Dropout),
        (rows, width): (&mut [f32], usize),
    ) {
        for (row, (key, position)) in rows.chunks_exact_mut(width).zip(&self.places) {
            drop_row(cpu.isa(), dropout.row(layer, Site::Output, *key, *position), row);
        }
    }
}

impl LstmLm {
    /// Adds the gradient of one micro-batch: of `weight` times the sum of the negative log-likelihoods of all tokens
    /// but the first of each sequence, which may not be shorter than two. Returns that sum, unweighted.
    pub fn accumulate(
        &self,
        device: &Device,
        batch: &Packed,
        weight: f32,
        dropout: Dropout,
        tape: &mut LstmTape,
        gradients: &mut Gradients,
    ) -> Result<f64, Error> {
        self.check(batch)?;
        if batch.n_sentences() == 0 {
            return Ok(0.0);
        }
        let cpu = device.require_cpu()?;
        let loss = self.forward(cpu, (batch, weight, dropout), tape);
        self.backward(cpu, dropout, (tape, gradients));
        Ok(loss.iter().map(|(loss, _)| f64::from(*loss)).sum())
    }

    /// The sum of the negative log-likelihoods without dropout, and of how many tokens; those that are `unscored` do not
    /// count.
    pub fn loss(
        &self,
        device: &Device,
        batch: &Packed,
        unscored: Option<u32>,
        tape: &mut LstmTape,
    ) -> Result<(f64, usize), Error> {
        self.check(batch)?;
        if batch.n_sentences() == 0 {
            return Ok((0.0, 0));
        }
        let losses = self.forward(device.require_cpu()?, (batch, 0.0, Dropout::NONE), tape);
        let scored = losses.iter().filter(|(_, target)| Some(*target) != unscored);
        Ok(scored.fold((0.0, 0), |(sum, n), (loss, _)| (sum + f64::from(*loss), n + 1)))
    }

    fn to_scores(&self) -> Linear {
        Linear { inputs: self.config.hidden_size, outputs: self.config.vocab_size }
    }

    /// Every target with its loss; the scores in the tape are then their gradient.
    fn forward(
        &self,
        cpu: &Cpu,
        (batch, weight, dropout): (&Packed, f32, Dropout),
        tape: &mut LstmTape,
    ) -> Vec<(f32, u32)> {
        tape.start(self, batch);
        let (n, width) = (tape.batch.n_rows(), self.config.embedding_size);
        let table = self.parameters.at(&self.embedding);
        for (row, token) in tape.inputs[0].chunks_exact_mut(width).zip(&tape.batch.inputs) {
            row.copy_from_slice(&table[*token as usize * width..][..width]);
        }
        tape.batch.drop(cpu, (0, dropout), (&mut tape.inputs[0], width));
        for (index, layer) in self.layers.iter().enumerate() {
            let x = &tape.inputs[index][..n * layer.inputs];
            layer.forward(cpu, &self.parameters, (&tape.batch, x), &mut tape.layers[index]);
            let output = &tape.layers[index].output[..n * layer.hidden];
            tape.inputs[index + 1][..n * layer.hidden].copy_from_slice(output);
            let rows = &mut tape.inputs[index + 1];
            tape.batch.drop(cpu, (index + 1, dropout), (rows, layer.hidden));
        }
        let last = &tape.inputs[self.layers.len()][..n * self.config.hidden_size];
        let scores = &mut tape.scores[..n * self.config.vocab_size];
        self.to_scores().forward(cpu, n, (last, self.parameters.at(&self.output)), scores);
        let targets = &tape.batch.targets[..];
        cross_entropy::backward(cpu, (targets, weight), scores, &mut tape.losses[..n]);
        tape.losses.iter().copied().zip(targets.iter().copied()).collect()
    }

    fn backward(
        &self,
        cpu: &Cpu,
        dropout: Dropout,
        (tape, gradients): (&mut LstmTape, &mut Gradients),
    ) {
        let (n, hidden) = (tape.batch.n_rows(), self.config.hidden_size);
        let scores = &tape.scores[..n * self.config.vocab_size];
        let last = &tape.inputs[self.layers.len()][..n * hidden];
        self.to_scores().weight_gradient(cpu, n, (scores, last), gradients.slot(&self.output));
        let weight = self.parameters.at(&self.output);
        let d = Accumulator { data: &mut tape.d[..n * hidden], accumulates: false };
        self.to_scores().backward(cpu, n, (scores, weight), d);
        for (index, layer) in self.layers.iter().enumerate().rev() {
            tape.batch.drop(cpu, (index + 1, dropout), (&mut tape.d, hidden));
            let LstmTape { batch, inputs, layers, d, dx, sums, .. } = tape;
            let x = &inputs[index][..n * layer.inputs];
            layer.backward(
                cpu,
                (&self.parameters, batch, x),
                (&mut layers[index], sums),
                (&mut d[..n * hidden], &mut dx[..n * layer.inputs], gradients),
            );
            std::mem::swap(d, dx);
        }
        let width = self.config.embedding_size;
        tape.batch.drop(cpu, (0, dropout), (&mut tape.d, width));
        if self.parameters.trains(&self.embedding) {
            let no_padding = u32::MAX;
            gradients.table.add_lookups(&tape.batch.inputs, &tape.d[..n * width], no_padding);
        }
    }
}
