//! The masked language model: parameters, encoder, head.

use super::head::Head;
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

/// A batch with hidden pieces.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MaskedBatch {
    /// The sentences, with the mask piece where something is hidden.
    pub sentences: Packed,
    /// Rows of the batch where something is hidden.
    pub positions: Vec<usize>,
    /// The hidden pieces, one for each position; not needed to predict.
    pub originals: Vec<u32>,
}

impl MaskedBatch {
    /// Forgets the sentences and keeps the memory.
    pub fn clear(&mut self) {
        self.sentences.clear();
        self.positions.clear();
        self.originals.clear();
    }

    /// Whether the halves, one after the other, have the positions in their order.
    pub(crate) fn can_be_halved(&self) -> bool {
        self.sentences.n_sentences() > 1 && self.positions.is_sorted()
    }

    /// The sentences in two parts, each with its masked positions in their order.
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

/// XLM-R with its masked-LM head, the output matrix tied to the piece table.
pub struct MaskedLm {
    parameters: Parameters,
    encoder: Encoder,
    head: Head,
}

impl MaskedLm {
    /// The model over these parameters, which are laid out for `config`.
    pub fn new(config: &Config, parameters: Parameters) -> Self {
        let encoder = Encoder::new(config, &parameters);
        let head = Head::new(config, &parameters);
        Self { parameters, encoder, head }
    }

    /// The sizes and rates.
    pub fn config(&self) -> &Config {
        self.encoder.config()
    }

    /// The parameters.
    pub fn parameters(&self) -> &Parameters {
        &self.parameters
    }

    /// The parameters, to be changed.
    pub fn parameters_mut(&mut self) -> &mut Parameters {
        &mut self.parameters
    }

    /// The encoder alone.
    pub fn encoder(&self) -> &Encoder {
        &self.encoder
    }

    /// The parts of the model that a GPU pass reads.
    fn view(&self) -> MaskedLmView<'_> {
        MaskedLmView { parameters: &self.parameters, encoder: &self.encoder, head: &self.head }
    }

    /// Adds the gradient of one micro-batch: of `weight` times the sum of the negative log-likelihoods at the masked
    /// positions. Returns that sum, unweighted. With `weight` one over the masked positions of the whole step, the
    /// gradient is that of the mean.
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
        batch.sentences.check(self.config())?;
        if batch.positions.is_empty() {
            return Ok(0.0);
        }
        let cpu = match device {
            Device::Cpu(cpu) => cpu,
            Device::Cuda(cuda) => {
                return cuda.train_masked(self.view(), batch, weight, dropout, gradients);
            }
        };
        let MaskedLmTape { encoder, head } = tape;
        self.encoder.forward(cpu, &self.parameters, (&batch.sentences, dropout), encoder)?;
        let masked = (&batch.positions[..], &batch.originals[..], weight);
        let loss = self.head.train(cpu, &self.parameters, masked, (encoder, head, gradients));
        self.encoder.backward(cpu, &self.parameters, &batch.sentences, (encoder, gradients));
        Ok(loss)
    }

    /// The sum of the negative log-likelihoods at the masked positions, without dropout: how well it guesses. `out`
    /// then holds the likeliest piece of each.
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
                batch.sentences.check(self.config())?;
                let query = MaskedQuery { batch, k: 1, allowed: None, needs_losses: true };
                return cuda.predict_masked(self.view(), query, out);
            }
        };
        self.predict(device, batch, 1, tape, out)?;
        let states = tape.head.d.chunks_exact(self.config().hidden_size);
        let rows = states.zip(&batch.originals).zip(&out.log_totals);
        let output = self.head.output(&self.parameters);
        let losses = rows.map(|((state, piece), log_total)| {
            f64::from(log_total - output.score(cpu.isa(), state, *piece))
        });
        Ok(losses.sum())
    }

    /// The `k` likeliest pieces at every masked position.
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

    /// The `k` likeliest of the pieces that are allowed at every masked position, or as many as there are.
    ///
    /// Probabilities are among all pieces, as in [`Self::predict`].
    ///
    /// # Panics
    /// If `allowed` does not name a set for each of the masked positions.
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
        batch.sentences.check(self.config())?;
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
        self.encoder.forward(cpu, &self.parameters, (&batch.sentences, Dropout::NONE), encoder)?;
        let mut states = std::mem::take(&mut head.d);
        states.reserve(n * self.config().hidden_size);
        self.head.forward(
            cpu,
            &self.parameters,
            (encoder.hidden(), &batch.positions),
            (head, &mut states),
        );
        head.best(cpu, self.head.output(&self.parameters), (&states, n), (k, allowed), out);
        head.d = states;
        Ok(())
    }
}
