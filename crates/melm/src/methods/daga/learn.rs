//! The training examples of the language model: linearized gold sentences, predicted word by word.

use melm_nn::device::Device;
use melm_nn::dropout::{Dropout, DropoutRates};
use melm_nn::gradients::Gradients;
use melm_nn::lstm::{LstmLm, LstmTape};
use melm_nn::packed::Packed;
use melm_nn::params::Parameters;

use super::vocabulary::UNKNOWN;
use crate::Error;
use crate::stage::OnBatch;
use crate::training::{Evaluation, Learner, LearnerBatch, Loss, mean_loss};

/// The language model and the linearized sentences it learns from.
pub(super) struct TrainingSet {
    pub(super) model: LstmLm,
    pub(super) train: Vec<Vec<u32>>,
    pub(super) dev: Vec<Vec<u32>>,
    /// True if the training sentences contain unknown tokens. If false, the unknown tokens of the dev set do not
    /// count in the dev loss, because the model could not learn to predict them.
    pub(super) learns_unknown: bool,
    pub(super) tape: LstmTape,
}

impl Learner for TrainingSet {
    type Example = usize;

    fn parameters(&mut self) -> &mut Parameters {
        self.model.parameters_mut()
    }

    fn n_examples(&self) -> usize {
        self.train.len()
    }

    fn example(&self, number: usize, _: u64) -> usize {
        number
    }

    fn n_pieces(&self, example: &usize) -> usize {
        self.train[*example].len()
    }

    fn n_losses(&self, example: &usize) -> usize {
        self.train[*example].len() - 1
    }

    fn dropout(&self, seed: u64, step: u64) -> Dropout {
        let rates = DropoutRates { hidden: self.model.config().dropout, attention: 0.0 };
        Dropout::with_rates(rates, seed, step)
    }

    fn accumulate(
        &mut self,
        device: &Device,
        batch: &LearnerBatch<'_, usize>,
        gradients: &mut Gradients,
    ) -> Result<f64, Error> {
        let mut packed = Packed::default();
        for number in batch.examples {
            packed.push(&self.train[*number], *number as u64);
        }
        let LearnerBatch { scale, dropout, .. } = *batch;
        let Self { model, tape, .. } = self;
        Ok(model.accumulate(device, &packed, scale, dropout, tape, gradients)?)
    }

    fn evaluate(
        &mut self,
        device: &Device,
        on_batch: OnBatch<'_>,
    ) -> Result<Option<Evaluation>, Error> {
        let unscored = (!self.learns_unknown).then_some(UNKNOWN);
        let loss = |sentences: &[Vec<u32>]| {
            let mut batch = Packed::default();
            for ids in sentences {
                batch.push(ids, 0);
            }
            let (sum, n) = self.model.loss(device, &batch, unscored, &mut self.tape)?;
            Ok(Loss { sum, n: n as u64 })
        };
        mean_loss(&self.dev, Vec::len, loss, on_batch)
    }
}
