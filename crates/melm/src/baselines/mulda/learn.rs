//! What the encoder-decoder learns: to write a whole sentence from its first tokens.

use melm_nn::device::Device;
use melm_nn::dropout::Dropout;
use melm_nn::gradients::Gradients;
use melm_nn::params::Parameters;
use melm_nn::seq2seq::{Seq2Seq, Seq2SeqBatch, Seq2SeqTape};

use super::pieces::{Body, Pieces};
use crate::Error;
use crate::fit::{Evaluation, Learner, Loss, Measure, Step, micro_batches};
use crate::random::StreamKey;

/// The linearized sentences, and the model that learns.
pub(super) struct Lessons {
    pub(super) model: Seq2Seq,
    pub(super) pieces: Pieces,
    pub(super) train: Vec<Body>,
    /// The dev set with its sources, which stay the same from epoch to epoch.
    pub(super) dev: Vec<Pair>,
    /// Dropout of rows and of attention weights.
    pub(super) rates: (f32, f32),
    /// Where cuts are drawn.
    pub(super) key: StreamKey,
    pub(super) tape: Seq2SeqTape,
}

/// What is read and what is to be written.
pub(super) struct Pair {
    key: u64,
    source: Vec<u32>,
    target: Vec<u32>,
}

impl Pair {
    /// A sentence of which the first tokens are shown; how many is drawn, none and all but the last included.
    pub(super) fn of(pieces: &Pieces, body: &Body, (number, key): (usize, StreamKey)) -> Self {
        let n_shown = key.at(number as u64).generator().below(body.n_tokens());
        let (source, target) = (pieces.source(body, n_shown), pieces.target(body));
        Self { key: number as u64, source, target }
    }

    fn n_pieces(&self) -> usize {
        self.source.len() + self.target.len()
    }
}

fn batch(pairs: &[Pair]) -> Seq2SeqBatch {
    let mut batch = Seq2SeqBatch::default();
    for pair in pairs {
        batch.push(&pair.source, &pair.target, pair.key);
    }
    batch
}

impl Learner for Lessons {
    fn parameters(&self) -> &Parameters {
        self.model.parameters()
    }

    fn parameters_mut(&mut self) -> &mut Parameters {
        self.model.parameters_mut()
    }

    fn n_examples(&self) -> usize {
        self.train.len()
    }

    fn accumulate(
        &mut self,
        device: &Device,
        step: &Step<'_>,
        gradients: &mut Gradients,
    ) -> Result<Loss, Error> {
        let key = self.key.then("cut").at(step.epoch);
        let pair = |at: &usize| Pair::of(&self.pieces, &self.train[*at], (*at, key));
        let pairs: Vec<_> = step.examples.iter().map(pair).collect();
        let n: usize = pairs.iter().map(|pair| pair.target.len()).sum();
        let seed = step.key.then("dropout").generator().bits();
        let dropout = Dropout::with_rates(self.rates, seed, step.number);
        let mut loss = Loss { sum: 0.0, n: n as u64 };
        for part in micro_batches(&pairs, Pair::n_pieces) {
            let (batch, weight) = (batch(part), 1.0 / n.max(1) as f32);
            let Self { model, tape, .. } = self;
            loss.sum += model.accumulate(device, &batch, weight, dropout, tape, gradients)?;
        }
        Ok(loss)
    }

    fn evaluate(&mut self, device: &Device) -> Result<Option<Evaluation>, Error> {
        let mut loss = Loss::default();
        for part in micro_batches(&self.dev, Pair::n_pieces) {
            let batch = batch(part);
            loss.sum += self.model.loss(device, &batch, &mut self.tape)?;
            loss.n += batch.targets.len() as u64;
        }
        let evaluation = Evaluation { measure: Measure::Loss, value: loss.mean() };
        Ok((loss.n > 0).then_some(evaluation))
    }
}
