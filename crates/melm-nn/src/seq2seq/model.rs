//! The model: both stacks, the shared table, and what it learns.

use super::config::{SHARED, Seq2SeqConfig};
use super::pass::Memory;
use super::stack::{Stack, StackTape};
use crate::buffer::{Buffer, zeroed_vec};
use crate::device::{Cpu, Device};
use crate::dropout::{Dropout, DropoutRates};
use crate::error::Error;
use crate::gradients::Gradients;
use crate::mlm::{HeadTape, Output, Predictions};
use crate::ops::linear::Accumulator;
use crate::packed::Packed;
use crate::params::Parameters;

/// Sources, and for each what the decoder reads and what it is to write.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Seq2SeqBatch {
    /// What the encoder reads.
    pub sources: Packed,
    /// What the decoder reads, one sequence for each source.
    pub inputs: Packed,
    /// The piece that follows each row of the inputs.
    pub targets: Vec<u32>,
}

impl Seq2SeqBatch {
    /// Adds a source and its target. The decoder reads the target one step late, beginning with its last piece, as mBART
    /// was trained.
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

/// Working memory of a training.
#[derive(Default)]
pub struct Seq2SeqTape {
    pub(super) encoder: StackTape,
    decoder: StackTape,
    head: HeadTape,
    d_memory: Buffer,
    /// The gradient of the bias, which nobody trains.
    d_bias: Vec<f32>,
    predictions: Predictions,
}

/// An mBART.
pub struct Seq2Seq {
    pub(super) config: Seq2SeqConfig,
    pub(super) parameters: Parameters,
    pub(super) encoder: Stack,
    pub(super) decoder: Stack,
    /// Added to the scores of all pieces; stored, never trained.
    pub(super) bias: Vec<f32>,
}

impl Seq2Seq {
    /// A model of zeros.
    ///
    /// # Errors
    /// [`Error::Limit`] if there are too many layers, [`Error::OutOfMemory`] if the memory cannot be had.
    pub fn zeros(config: &Seq2SeqConfig) -> Result<Self, Error> {
        config.check_limits()?;
        let parameters = Parameters::from_shapes(config.tensors())?;
        let encoder = Stack::encoder(config, &parameters);
        let decoder = Stack::decoder(config, &parameters);
        let bias = zeroed_vec(config.vocab_size)?;
        Ok(Self { config: config.clone(), parameters, encoder, decoder, bias })
    }

    /// The sizes and rates.
    pub fn config(&self) -> &Seq2SeqConfig {
        &self.config
    }

    /// The parameters.
    pub fn parameters(&self) -> &Parameters {
        &self.parameters
    }

    /// The parameters, to be changed.
    pub fn parameters_mut(&mut self) -> &mut Parameters {
        &mut self.parameters
    }

    /// The dropout of one training step.
    pub fn dropout(&self, seed: u64, step: u64) -> Dropout {
        let (hidden, attention) = (self.config.dropout, self.config.attention_dropout);
        Dropout::with_rates(DropoutRates { hidden, attention }, seed, step)
    }

    pub(super) fn output(&self) -> Output<'_> {
        let table = self.parameters.span(SHARED, SHARED);
        Output { table: self.parameters.at(&table), bias: &self.bias, width: self.config.width }
    }

    /// Adds the gradient of one micro-batch: of `weight` times the sum of the negative log-likelihoods of its targets.
    /// Returns that sum, unweighted.
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
        self.forward(cpu, (batch, dropout), tape);
        let output = self.output();
        let mut table = std::mem::take(&mut gradients.table);
        let part = table.add_head(n);
        part.states[..n * width].copy_from_slice(tape.decoder.made(width));
        tape.head.score(cpu, output, part);
        let states = part.states.chunks_exact(width).zip(&batch.targets);
        let losses = states.zip(&tape.head.log_totals[..n]).map(|((state, target), log_total)| {
            f64::from(log_total - output.score(cpu.isa(), state, *target))
        });
        let loss = losses.sum();
        tape.d_bias.resize(self.bias.len(), 0.0);
        let unused = Accumulator { data: &mut tape.d_bias, accumulates: false };
        tape.head.errors(cpu, output, (part, &batch.targets, weight), unused);
        if !self.parameters.trains(&self.encoder.table) {
            table.remove_head();
        }
        gradients.table = table;
        self.backward(cpu, (batch, dropout), (tape, gradients));
        Ok(loss)
    }

    /// The sum of the negative log-likelihoods of the targets, without dropout.
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
        let (cpu, width, n) = (device.require_cpu()?, self.config.width, batch.targets.len());
        self.forward(cpu, (batch, Dropout::NONE), tape);
        let (output, states) = (self.output(), tape.decoder.made(width));
        tape.head.best(cpu, output, (states, n), (1, None), &mut tape.predictions);
        let rows = states.chunks_exact(width).zip(&batch.targets);
        let losses = rows.zip(&tape.predictions.log_totals).map(|((state, target), log_total)| {
            f64::from(log_total - output.score(cpu.isa(), state, *target))
        });
        Ok(losses.sum())
    }

    /// The rows that the encoder makes of sources, in the tape.
    pub(super) fn encode(
        &self,
        cpu: &Cpu,
        (sources, dropout): (&Packed, Dropout),
        tape: &mut StackTape,
    ) {
        let model = (cpu, &self.parameters);
        self.encoder.forward(model, (sources, None), (self.config.width, dropout), tape);
    }

    fn forward(
        &self,
        cpu: &Cpu,
        (batch, dropout): (&Seq2SeqBatch, Dropout),
        tape: &mut Seq2SeqTape,
    ) {
        let width = self.config.width;
        self.encode(cpu, (&batch.sources, dropout), &mut tape.encoder);
        let memory = Memory { batch: &batch.sources, rows: tape.encoder.made(width) };
        let read = (&batch.inputs, Some(memory));
        self.decoder.forward((cpu, &self.parameters), read, (width, dropout), &mut tape.decoder);
    }

    fn backward(
        &self,
        cpu: &Cpu,
        (batch, dropout): (&Seq2SeqBatch, Dropout),
        (tape, gradients): (&mut Seq2SeqTape, &mut Gradients),
    ) {
        let (width, model) = (self.config.width, (cpu, &self.parameters));
        let Seq2SeqTape { encoder, decoder, head, d_memory, .. } = tape;
        let len = batch.sources.n_rows() * width;
        d_memory.reserve(len);
        let d_memory = &mut d_memory[..len];
        d_memory.fill(0.0);
        let memory = Memory { batch: &batch.sources, rows: encoder.made(width) };
        let read = (&batch.inputs, Some((memory, &mut *d_memory)));
        let d = &mut head.d[..batch.targets.len() * width];
        self.decoder.backward(model, read, (dropout, decoder), (d, gradients));
        self.encoder.backward(
            model,
            (&batch.sources, None),
            (dropout, encoder),
            (d_memory, gradients),
        );
    }

    fn check(&self, batch: &Seq2SeqBatch) -> Result<(), Error> {
        self.check_pieces(&batch.sources)?;
        self.check_pieces(&batch.inputs)
    }

    pub(super) fn check_pieces(&self, batch: &Packed) -> Result<(), Error> {
        let (vocab_size, limit) = (self.config.vocab_size, self.config.longest);
        if let Some(piece) = batch.pieces().iter().find(|piece| **piece as usize >= vocab_size) {
            return Err(Error::PieceOutOfRange { piece: *piece, vocab_size });
        }
        let mut lengths = (0..batch.n_sentences()).map(|sentence| batch.rows(sentence).len());
        match lengths.find(|n| *n == 0 || *n > limit) {
            Some(n_pieces) => Err(Error::SentenceLength { n_pieces, limit }),
            None => Ok(()),
        }
    }
}
