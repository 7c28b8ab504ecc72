//! The model: encoder, decoder, the shared table, and training.

use super::config::{SHARED, Seq2SeqConfig};
use super::pass::Memory;
use super::stack::{Stack, StackInput, StackTape};
use crate::buffer::{Buffer, zeroed_vec};
use crate::device::{Cpu, Device};
use crate::dropout::{Dropout, DropoutRates};
use crate::error::Error;
use crate::gradients::Gradients;
use crate::mlm::{HeadTape, Output, Predictions};
use crate::ops::linear::Accumulator;
use crate::packed::Packed;
use crate::params::Parameters;

/// A batch of sources and their targets.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Seq2SeqBatch {
    /// The inputs of the encoder.
    pub sources: Packed,
    /// The inputs of the decoder, one sequence for each source.
    pub inputs: Packed,
    /// The piece to predict at each row of the inputs.
    pub targets: Vec<u32>,
}

impl Seq2SeqBatch {
    /// Adds a source and its target. The input of the decoder is the target shifted by one: first the last piece of the
    /// target, then the other pieces. mBART was trained in this way.
    ///
    /// ```
    /// use melm_nn::seq2seq::Seq2SeqBatch;
    /// let mut batch = Seq2SeqBatch::default();
    /// batch.push(&[7, 2, 9], &[9, 5, 2], 0);
    /// assert_eq!((batch.inputs.pieces(), &batch.targets[..]), (&[2, 9, 5][..], &[9, 5, 2][..]));
    /// ```
    pub fn push(&mut self, source: &[u32], target: &[u32], key: u64) {
        let mut input = target.to_vec();
        if !input.is_empty() {
            input.rotate_right(1);
        }
        self.sources.push(source, key);
        self.inputs.push(&input, key);
        self.targets.extend(target);
    }
}

/// Working memory of a [`Seq2Seq`]: results of the forward pass that the backward pass needs.
#[derive(Default)]
pub struct Seq2SeqTape {
    encoder: StackTape,
    decoder: StackTape,
    head: HeadTape,
    d_memory: Buffer,
    /// The gradient of the output bias. It is computed but not used.
    d_bias: Vec<f32>,
    predictions: Predictions,
}

/// An encoder-decoder with the architecture of mBART.
pub struct Seq2Seq {
    pub(super) config: Seq2SeqConfig,
    pub(super) parameters: Parameters,
    pub(super) encoder: Stack,
    pub(super) decoder: Stack,
    /// The bias of the output scores. It is stored with the model, but not trained.
    pub(super) bias: Vec<f32>,
}

impl Seq2Seq {
    /// Creates a model whose parameters are all zero.
    ///
    /// # Errors
    /// Fails with [`Error::Limit`] if there are too many layers, and with [`Error::OutOfMemory`] if there is not enough
    /// memory.
    pub(super) fn zeros(config: &Seq2SeqConfig) -> Result<Self, Error> {
        config.check_limits()?;
        let parameters = Parameters::from_shapes(config.tensors())?;
        let encoder = Stack::encoder(config, &parameters);
        let decoder = Stack::decoder(config, &parameters);
        let bias = zeroed_vec(config.vocab_size)?;
        Ok(Self { config: config.clone(), parameters, encoder, decoder, bias })
    }

    /// Returns the sizes and dropout rates.
    pub fn config(&self) -> &Seq2SeqConfig {
        &self.config
    }

    /// Returns the parameters.
    pub fn parameters(&self) -> &Parameters {
        &self.parameters
    }

    /// Returns the parameters for modification.
    pub fn parameters_mut(&mut self) -> &mut Parameters {
        &mut self.parameters
    }

    /// Returns the dropout of one training step.
    pub fn dropout(&self, seed: u64, step: u64) -> Dropout {
        let (hidden, attention) = (self.config.dropout, self.config.attention_dropout);
        Dropout::with_rates(DropoutRates { hidden, attention }, seed, step)
    }

    pub(super) fn output(&self) -> Output<'_> {
        let table = self.parameters.span(SHARED, SHARED);
        Output { table: self.parameters.at(&table), bias: &self.bias, width: self.config.width }
    }

    /// Adds the gradient of one micro-batch to `gradients`. Returns the sum of the negative log-likelihoods of all
    /// target pieces.
    ///
    /// The added gradient is that of `weight` times this sum.
    ///
    /// # Errors
    /// Fails if a piece is not in the vocabulary, if a sequence is empty or too long, or if the device is a GPU,
    /// because this model has no GPU kernels.
    pub fn accumulate(
        &self,
        device: &Device,
        batch: &Seq2SeqBatch,
        weight: f32,
        dropout: Dropout,
        tape: &mut Seq2SeqTape,
        gradients: &mut Gradients,
    ) -> Result<f64, Error> {
        self.check(batch)?;
        if batch.targets.is_empty() {
            return Ok(0.0);
        }
        let (cpu, width, n) = (device.require_cpu()?, self.config.width, batch.targets.len());
        self.forward(cpu, batch, dropout, tape)?;
        let trained = self.parameters.table().trained_rows();
        let part = gradients.table.start_head(n, &trained)?;
        part.states[..n * width].copy_from_slice(tape.decoder.output(width));
        tape.d_bias.resize(self.bias.len(), 0.0);
        let d_bias = Accumulator::overwrite(&mut tape.d_bias);
        let loss = tape.head.train(cpu, self.output(), part, &batch.targets, weight, d_bias)?;
        gradients.table.finish_head()?;
        self.backward(cpu, batch, dropout, tape, gradients)?;
        Ok(loss)
    }

    /// Returns the sum of the negative log-likelihoods of all target pieces, without dropout.
    ///
    /// # Errors
    /// As [`Self::accumulate`].
    pub fn loss(
        &self,
        device: &Device,
        batch: &Seq2SeqBatch,
        tape: &mut Seq2SeqTape,
    ) -> Result<f64, Error> {
        self.check(batch)?;
        if batch.targets.is_empty() {
            return Ok(0.0);
        }
        let cpu = device.require_cpu()?;
        self.forward(cpu, batch, Dropout::NONE, tape)?;
        let Seq2SeqTape { decoder, head, predictions, .. } = tape;
        let (output, states) = (self.output(), decoder.output(self.config.width));
        head.best(cpu, output, states, 1, None, predictions)?;
        Ok(output.loss(cpu.isa(), states, &batch.targets, &predictions.log_totals))
    }

    fn stack_input<'a>(
        &'a self,
        cpu: &'a Cpu,
        batch: &'a Packed,
        dropout: Dropout,
    ) -> StackInput<'a> {
        StackInput { cpu, parameters: &self.parameters, batch, dropout }
    }

    /// Runs the encoder and writes its output to the tape.
    pub(super) fn encode(
        &self,
        cpu: &Cpu,
        sources: &Packed,
        dropout: Dropout,
        tape: &mut StackTape,
    ) -> Result<(), Error> {
        self.encoder.forward(self.stack_input(cpu, sources, dropout), None, tape)?;
        Ok(())
    }

    fn forward(
        &self,
        cpu: &Cpu,
        batch: &Seq2SeqBatch,
        dropout: Dropout,
        tape: &mut Seq2SeqTape,
    ) -> Result<(), Error> {
        self.encode(cpu, &batch.sources, dropout, &mut tape.encoder)?;
        let rows = tape.encoder.output(self.config.width);
        let memory = Memory { batch: &batch.sources, rows };
        let input = self.stack_input(cpu, &batch.inputs, dropout);
        self.decoder.forward(input, Some(memory), &mut tape.decoder)?;
        Ok(())
    }

    fn backward(
        &self,
        cpu: &Cpu,
        batch: &Seq2SeqBatch,
        dropout: Dropout,
        tape: &mut Seq2SeqTape,
        gradients: &mut Gradients,
    ) -> Result<(), Error> {
        let width = self.config.width;
        let Seq2SeqTape { encoder, decoder, head, d_memory, .. } = tape;
        let len = batch.sources.n_rows() * width;
        d_memory.try_reserve(len)?;
        let d_memory = &mut d_memory[..len];
        d_memory.fill(0.0);
        let memory = Memory { batch: &batch.sources, rows: encoder.output(width) };
        let d = &mut head.d[..batch.targets.len() * width];
        let input = self.stack_input(cpu, &batch.inputs, dropout);
        self.decoder.backward(input, Some((memory, &mut *d_memory)), decoder, d, gradients)?;
        let input = self.stack_input(cpu, &batch.sources, dropout);
        self.encoder.backward(input, None, encoder, d_memory, gradients)?;
        Ok(())
    }

    fn check(&self, batch: &Seq2SeqBatch) -> Result<(), Error> {
        self.check_pieces(&batch.sources)?;
        self.check_pieces(&batch.inputs)
    }

    pub(super) fn check_pieces(&self, batch: &Packed) -> Result<(), Error> {
        batch.check(self.config.vocab_size, self.config.max_pieces)
    }
}
