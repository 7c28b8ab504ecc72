//! What the language model learns from: every gold sentence, linearized, word after word.

use melm_nn::device::Device;
use melm_nn::dropout::Dropout;
use melm_nn::gradients::Gradients;
use melm_nn::lstm::{LstmLm, LstmTape};
use melm_nn::packed::Packed;
use melm_nn::params::Parameters;

use super::vocabulary::UNKNOWN;
use crate::Error;
use crate::fit::{Evaluation, Learner, Loss, Measure, Step, micro_batches};

/// The linearized sentences, and the model that learns.
pub(super) struct Lessons {
    pub(super) model: LstmLm,
    pub(super) train: Vec<Vec<u32>>,
    pub(super) dev: Vec<Vec<u32>>,
    /// Whether gold has unknown tokens to learn from. If not, those of dev say nothing about the model.
    pub(super) learns_unknown: bool,
    pub(super) tape: LstmTape,
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
        let examples: Vec<_> = step.examples.iter().map(|at| (*at, &self.train[*at])).collect();
        let n: usize = examples.iter().map(|(_, ids)| ids.len() - 1).sum();
        let seed = step.key.then("dropout").generator().bits();
        let rate = self.model.config().dropout;
        let dropout = Dropout::with_rates((rate, 0.0), seed, step.number);
        let mut loss = Loss { sum: 0.0, n: n as u64 };
        for part in micro_batches(&examples, |(_, ids)| ids.len()) {
            let mut batch = Packed::default();
            for (at, ids) in part {
                batch.push(ids, *at as u64);
            }
            let weight = 1.0 / n.max(1) as f32;
            let Self { model, tape, .. } = self;
            loss.sum += model.accumulate(device, &batch, weight, dropout, tape, gradients)?;
        }
        Ok(loss)
    }

    fn evaluate(&mut self, device: &Device) -> Result<Option<Evaluation>, Error> {
        let unscored = (!self.learns_unknown).then_some(UNKNOWN);
        let mut loss = Loss::default();
        for part in micro_batches(&self.dev, Vec::len) {
            let mut batch = Packed::default();
            for ids in part {
                batch.push(ids, 0);
            }
            let (sum, n) = self.model.loss(device, &batch, unscored, &mut self.tape)?;
            loss.sum += sum;
            loss.n += n as u64;
        }
        let evaluation = Evaluation { measure: Measure::Loss, value: loss.mean() };
        Ok((loss.n > 0).then_some(evaluation))
    }
}
