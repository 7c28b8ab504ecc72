//! Training: the log-likelihood of every token given the tokens before it, and the gradient.

use super::LstmLm;
use super::batch::TimeMajorBatch;
use super::layer::{LayerTape, Pass};
use crate::buffer::Buffer;
use crate::device::{Cpu, Device};
use crate::dropout::{Dropout, Site};
use crate::error::Error;
use crate::gradients::Gradients;
use crate::ops::linear::{Accumulator, Linear};
use crate::ops::{RowDropout, cross_entropy};
use crate::packed::Packed;

/// Working memory of an [`LstmLm`]: results of the forward pass that the backward pass needs.
#[derive(Default)]
pub struct LstmTape {
    batch: TimeMajorBatch,
    /// The inputs of each layer and of the output matrix, after dropout.
    inputs: Vec<Buffer>,
    layers: Vec<LayerTape>,
    /// The scores of the vocabulary at every row, later replaced by their gradient.
    scores: Buffer,
    losses: Buffer,
    d: Buffer,
    dx: Buffer,
}

impl LstmTape {
    fn start(&mut self, model: &LstmLm, batch: &Packed) -> Result<(), Error> {
        self.batch.set(batch);
        self.inputs.resize_with(model.layers.len() + 1, Buffer::default);
        self.layers.resize_with(model.layers.len(), LayerTape::default);
        let n = self.batch.n_rows();
        let widest = model.config.embedding_size.max(model.config.hidden_size);
        for buffer in self.inputs.iter_mut().chain([&mut self.d, &mut self.dx]) {
            buffer.try_reserve(n * widest)?;
        }
        self.scores.try_reserve(n * model.config.vocab_size)?;
        self.losses.try_reserve(n)?;
        Ok(())
    }
}

impl LstmLm {
    /// Adds the gradient of one micro-batch to `gradients`. Returns the sum of the negative log-likelihoods of all
    /// tokens except the first of each sequence.
    ///
    /// The added gradient is that of `weight` times this sum.
    ///
    /// # Errors
    /// Fails if a token is not in the vocabulary, if a sequence has fewer than two tokens, or if the device is a GPU,
    /// because this model has no GPU kernels.
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
        let losses = self.forward(cpu, batch, weight, dropout, tape)?;
        self.backward(cpu, dropout, tape, gradients)?;
        Ok(losses.iter().map(|target| f64::from(target.loss)).sum())
    }

    /// Returns the sum of the negative log-likelihoods without dropout, and the number of tokens in this sum. Tokens
    /// equal to `unscored` are left out.
    ///
    /// # Errors
    /// As [`Self::accumulate`].
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
        let targets = self.forward(device.require_cpu()?, batch, 0.0, Dropout::NONE, tape)?;
        let scored = targets.iter().filter(|target| Some(target.token) != unscored);
        Ok(scored.fold((0.0, 0), |(sum, n), target| (sum + f64::from(target.loss), n + 1)))
    }

    pub(super) fn output_linear(&self) -> Linear {
        Linear { inputs: self.config.hidden_size, outputs: self.config.vocab_size }
    }

    /// Returns the loss of every target, and writes the gradient of the scores to the tape.
    fn forward(
        &self,
        cpu: &Cpu,
        batch: &Packed,
        weight: f32,
        dropout: Dropout,
        tape: &mut LstmTape,
    ) -> Result<Vec<TargetLoss>, Error> {
        tape.start(self, batch)?;
        let LstmTape { batch, inputs, layers, scores, losses, .. } = tape;
        let (n, width) = (batch.n_rows(), self.config.embedding_size);
        let dropout = RowDropout { dropout, places: &batch.places };
        let table = self.parameters.at(&self.embedding);
        for (row, token) in inputs[0].chunks_exact_mut(width).zip(&batch.inputs) {
            row.copy_from_slice(&table[*token as usize * width..][..width]);
        }
        dropout.drop_rows(cpu.isa(), 0, Site::Output, &mut inputs[0], width);
        let pass = Pass { cpu, parameters: &self.parameters, batch };
        for (index, layer) in self.layers.iter().enumerate() {
            layer.forward(pass, &inputs[index][..n * layer.inputs], &mut layers[index])?;
            let (output, next) = (&layers[index].output, &mut inputs[index + 1]);
            next[..n * layer.hidden].copy_from_slice(&output[..n * layer.hidden]);
            dropout.drop_rows(cpu.isa(), index + 1, Site::Output, next, layer.hidden);
        }
        let last = &inputs[self.layers.len()][..n * self.config.hidden_size];
        let scores = &mut scores[..n * self.config.vocab_size];
        self.output_linear().forward(cpu, last, self.parameters.at(&self.output), scores);
        let losses = &mut losses[..n];
        cross_entropy::backward(cpu, &batch.targets, weight, scores, losses);
        let targets = losses.iter().zip(&batch.targets);
        Ok(targets.map(|(loss, token)| TargetLoss { loss: *loss, token: *token }).collect())
    }

    fn backward(
        &self,
        cpu: &Cpu,
        dropout: Dropout,
        tape: &mut LstmTape,
        gradients: &mut Gradients,
    ) -> Result<(), Error> {
        let LstmTape { batch, inputs, layers, scores, d, dx, .. } = tape;
        let (n, hidden) = (batch.n_rows(), self.config.hidden_size);
        let dropout = RowDropout { dropout, places: &batch.places };
        let d_scores = &scores[..n * self.config.vocab_size];
        let last = &inputs[self.layers.len()][..n * hidden];
        self.output_linear().weight_gradient(cpu, d_scores, last, gradients.slot(&self.output));
        let weight = self.parameters.at(&self.output);
        let out = Accumulator::overwrite(&mut d[..n * hidden]);
        self.output_linear().backward(cpu, d_scores, weight, out);
        let pass = Pass { cpu, parameters: &self.parameters, batch };
        for (index, layer) in self.layers.iter().enumerate().rev() {
            dropout.drop_rows(cpu.isa(), index + 1, Site::Output, d, hidden);
            let x = &inputs[index][..n * layer.inputs];
            let (d_output, d_input) = (&mut d[..n * hidden], &mut dx[..n * layer.inputs]);
            layer.backward(pass, x, &mut layers[index], d_output, d_input, gradients)?;
            std::mem::swap(d, dx);
        }
        let width = self.config.embedding_size;
        dropout.drop_rows(cpu.isa(), 0, Site::Output, d, width);
        if self.parameters.trains(&self.embedding) {
            let no_padding = u32::MAX;
            let (d, trained) = (&d[..n * width], self.parameters.table().trained_rows());
            gradients.table.add_lookups(&batch.inputs, d, no_padding, &trained)?;
        }
        Ok(())
    }
}

/// A token to predict, and its negative log-likelihood.
struct TargetLoss {
    loss: f32,
    token: u32,
}
