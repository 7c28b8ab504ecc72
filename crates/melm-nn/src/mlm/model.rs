//! The masked language model: parameters, encoder and head.

use super::head::LmHead;
use super::{AllowedPieces, MaskedLmTape, Predictions};
use crate::config::Config;
use crate::cuda::{MaskedLmView, MaskedQuery};
use crate::device::Device;
use crate::dropout::Dropout;
use crate::encoder::Encoder;
use crate::error::Error;
use crate::gradients::Gradients;
use crate::packed::Packed;
use crate::params::Parameters;

/// A batch with masked pieces.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MaskedBatch {
    /// The sentences, with the mask piece at the masked positions.
    pub sentences: Packed,
    /// The indices of the masked rows of the batch.
    pub positions: Vec<usize>,
    /// The original piece at each masked position. May be empty for prediction.
    pub originals: Vec<u32>,
}

impl MaskedBatch {
    /// Removes the sentences. The allocated memory is reused.
    pub fn clear(&mut self) {
        self.sentences.clear();
        self.positions.clear();
        self.originals.clear();
    }

    /// Returns true if the batch has several sentences and its positions are sorted. Then the positions of the two
    /// [`Self::halves`], concatenated, have the order of this batch.
    #[cfg(feature = "cuda")]
    pub(crate) fn can_be_halved(&self) -> bool {
        self.sentences.n_sentences() > 1 && self.positions.is_sorted()
    }

    /// Splits the sentences into two batches. The order of the masked positions stays the same in each.
    #[cfg(feature = "cuda")]
    pub(crate) fn halves(&self) -> [Self; 2] {
        let n = self.sentences.n_sentences();
        let middle = self.sentences.rows(n / 2).start;
        [0..n / 2, n / 2..n].map(|sentences| {
            let is_second = sentences.start > 0;
            let start = if is_second { middle } else { 0 };
            let mut half = Self { sentences: self.sentences.part(sentences), ..Self::default() };
            for (at, row) in self.positions.iter().enumerate() {
                if (*row >= middle) == is_second {
                    half.positions.push(row - start);
                    half.originals.extend(self.originals.get(at));
                }
            }
            half
        })
    }

    fn check(&self, config: &Config, needs_originals: bool) -> Result<(), Error> {
        let n_rows = self.sentences.n_rows();
        let fits = self.positions.iter().all(|row| *row < n_rows);
        if !fits || (needs_originals && self.originals.len() != self.positions.len()) {
            return Err(Error::MaskedPositions {
                n_positions: self.positions.len(),
                n_originals: self.originals.len(),
                n_rows,
            });
        }
        match self.originals.iter().find(|piece| **piece as usize >= config.vocab_size) {
            Some(piece) => {
                Err(Error::PieceOutOfRange { piece: *piece, vocab_size: config.vocab_size })
            }
            None => Ok(()),
        }
    }
}

/// XLM-R with its masked-LM head, whose output matrix is tied to the piece table.
pub struct MaskedLm {
    parameters: Parameters,
    encoder: Encoder,
    head: LmHead,
}

impl MaskedLm {
    /// Creates the model from parameters that are laid out for `config`.
    pub(super) fn new(config: &Config, parameters: Parameters) -> Self {
        let encoder = Encoder::new(config, &parameters);
        let head = LmHead::new(config, &parameters);
        Self { parameters, encoder, head }
    }

    /// Returns the sizes and dropout rates.
    pub fn config(&self) -> &Config {
        self.encoder.config()
    }

    /// Returns the parameters.
    pub fn parameters(&self) -> &Parameters {
        &self.parameters
    }

    /// Returns the parameters for modification.
    pub fn parameters_mut(&mut self) -> &mut Parameters {
        &mut self.parameters
    }

    /// Returns the parts of the model that a GPU pass reads.
    fn view(&self) -> MaskedLmView<'_> {
        MaskedLmView { parameters: &self.parameters, encoder: &self.encoder, head: &self.head }
    }

    /// Adds the gradient of one micro-batch to `gradients`. Returns the sum of the negative log-likelihoods at the masked
    /// positions.
    ///
    /// The added gradient is that of `weight` times this sum. If `weight` is one over the number of masked positions of
    /// the whole step, the gradient is that of the mean.
    ///
    /// # Errors
    /// Fails if the batch does not fit the model, or if the device fails.
    ///
    /// # Panics
    /// Panics if `tape` is for prediction.
    pub fn accumulate(
        &self,
        device: &Device,
        batch: &MaskedBatch,
        weight: f32,
        dropout: Dropout,
        tape: &mut MaskedLmTape,
        gradients: &mut Gradients,
    ) -> Result<f64, Error> {
        batch.check(self.config(), true)?;
        self.encoder.check(&batch.sentences)?;
        if batch.positions.is_empty() {
            return Ok(0.0);
        }
        let cpu = match device {
            Device::Cpu(cpu) => cpu,
            Device::Cuda(cuda) => {
                return cuda.train_masked(self.view(), batch, weight, dropout, gradients);
            }
        };
        let (parameters, sentences) = (&self.parameters, &batch.sentences);
        let rows = &batch.positions;
        self.encoder.forward(cpu, parameters, sentences, rows, dropout, &mut tape.encoder)?;
        let loss = self.head.train(cpu, parameters, batch, weight, tape, gradients)?;
        self.encoder.backward(cpu, parameters, sentences, &mut tape.encoder, gradients)?;
        Ok(loss)
    }

    /// Returns the sum of the negative log-likelihoods at the masked positions, without dropout. Writes the most likely
    /// piece at each position to `out`.
    ///
    /// # Errors
    /// Fails if the batch does not fit the model, or if the device fails.
    pub fn loss(
        &self,
        device: &Device,
        batch: &MaskedBatch,
        tape: &mut MaskedLmTape,
        out: &mut Predictions,
    ) -> Result<f64, Error> {
        batch.check(self.config(), true)?;
        let cpu = match device {
            Device::Cpu(cpu) => cpu,
            Device::Cuda(cuda) => {
                self.encoder.check(&batch.sentences)?;
                let query = MaskedQuery { batch, k: 1, allowed: None, needs_losses: true };
                return cuda.predict_masked(self.view(), query, out);
            }
        };
        self.predict(device, batch, 1, tape, out)?;
        let output = self.head.output(&self.parameters);
        Ok(output.loss(cpu.isa(), &tape.head.d, &batch.originals, &out.log_totals))
    }

    /// Writes the `k` most likely pieces at every masked position to `out`.
    ///
    /// # Errors
    /// Fails if the batch does not fit the model, or if the device fails.
    pub fn predict(
        &self,
        device: &Device,
        batch: &MaskedBatch,
        k: usize,
        tape: &mut MaskedLmTape,
        out: &mut Predictions,
    ) -> Result<(), Error> {
        self.predict_with(device, batch, k, None, tape, out)
    }

    /// Like [`Self::predict`], but returns only pieces that are allowed at each position. A position has fewer than `k`
    /// candidates if fewer than `k` pieces are allowed there.
    ///
    /// The probabilities are not renormalised: they are relative to all pieces.
    ///
    /// # Errors
    /// As [`Self::predict`].
    ///
    /// # Panics
    /// Panics if `allowed` does not contain the index of an existing set for each masked position.
    pub fn predict_allowed(
        &self,
        device: &Device,
        batch: &MaskedBatch,
        k: usize,
        allowed: AllowedPieces<'_>,
        tape: &mut MaskedLmTape,
        out: &mut Predictions,
    ) -> Result<(), Error> {
        allowed.check(batch.positions.len());
        self.predict_with(device, batch, k, Some(allowed), tape, out)
    }

    fn predict_with(
        &self,
        device: &Device,
        batch: &MaskedBatch,
        k: usize,
        allowed: Option<AllowedPieces<'_>>,
        tape: &mut MaskedLmTape,
        out: &mut Predictions,
    ) -> Result<(), Error> {
        batch.check(self.config(), false)?;
        self.encoder.check(&batch.sentences)?;
        let n = batch.positions.len();
        if n == 0 || k == 0 {
            out.clear();
            return Ok(());
        }
        let cpu = match device {
            Device::Cpu(cpu) => cpu,
            Device::Cuda(cuda) => {
                let query = MaskedQuery { batch, k, allowed, needs_losses: false };
                cuda.predict_masked(self.view(), query, out)?;
                return Ok(());
            }
        };
        let MaskedLmTape { encoder, head } = tape;
        let (parameters, width) = (&self.parameters, self.config().hidden_size);
        let (sentences, rows) = (&batch.sentences, &batch.positions);
        self.encoder.forward(cpu, parameters, sentences, rows, Dropout::NONE, encoder)?;
        // The buffer is moved out, because the tape of the head is written to at the same time.
        let mut buffer = std::mem::take(&mut head.d);
        buffer.try_reserve(n * width)?;
        let states = &mut buffer[..n * width];
        let transform = &self.head.transform;
        transform.forward(cpu, parameters, encoder.hidden(), &mut head.transform, states)?;
        head.best(cpu, self.head.output(parameters), states, k, allowed, out)?;
        head.d = buffer;
        Ok(())
    }
}
