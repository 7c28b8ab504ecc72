//! The training set of a masked entity language model. Masks are redrawn; the loss is that of the masked pieces.

use melm_nn::device::Device;
use melm_nn::dropout::Dropout;
use melm_nn::gradients::Gradients;
use melm_nn::mlm::{MaskedBatch, MaskedLmTape, Predictions};
use melm_nn::params::Parameters;

use super::{EntityLm, FinetuneSettings};
use crate::Error;
use crate::fit::{Evaluation, Learner, Loss, Measure, Step, micro_batches};
use crate::linearize::LinearizedCorpus;
use crate::mask::{Masked, TrainingMask};
use crate::random::StreamKey;

/// Masks drawn for each dev sentence. With a single one, the losses of epochs are hard to compare.
const DEV_DRAWS: u64 = 2;

/// The examples of a fine-tuning, and the model that is trained.
pub(super) struct TrainingSet {
    lm: EntityLm,
    mask: TrainingMask,
    key: StreamKey,
    train: LinearizedCorpus,
    /// The masked dev set. The masks are the same in every epoch.
    dev: Vec<Masked>,
    tape: MaskedLmTape,
    batch: MaskedBatch,
    out: Predictions,
}

impl TrainingSet {
    pub(super) fn new(
        lm: EntityLm,
        train: LinearizedCorpus,
        dev: Option<LinearizedCorpus>,
        settings: &FinetuneSettings,
        key: StreamKey,
    ) -> Self {
        let dev_key = key.then("dev mask");
        let windows = dev.map_or(Vec::new(), |dev| dev.windows);
        let draw_all = |draw| {
            let mask = |window| lm.masker.for_training(window, &settings.mask, dev_key, draw);
            windows.iter().map(mask).collect::<Vec<_>>()
        };
        let drawn = (0..DEV_DRAWS).flat_map(draw_all);
        let dev = drawn.filter(|masked| !masked.positions.is_empty()).collect();
        Self {
            tape: MaskedLmTape::for_training(lm.model.config()),
            batch: MaskedBatch::default(),
            out: Predictions::default(),
            mask: settings.mask,
            key: key.then("mask"),
            train,
            dev,
            lm,
        }
    }

    /// Returns the model and the linearized training set.
    pub(super) fn into_parts(self) -> (EntityLm, LinearizedCorpus) {
        (self.lm, self.train)
    }
}

impl Learner for TrainingSet {
    fn parameters(&self) -> &Parameters {
        self.lm.model.parameters()
    }

    fn parameters_mut(&mut self) -> &mut Parameters {
        self.lm.model.parameters_mut()
    }

    fn n_examples(&self) -> usize {
        self.train.windows.len()
    }

    fn accumulate(
        &mut self,
        device: &Device,
        step: &Step<'_>,
        gradients: &mut Gradients,
    ) -> Result<Loss, Error> {
        let mask = |at: &usize| {
            let window = &self.train.windows[*at];
            let masker = self.lm.masker();
            (*at as u64, masker.for_training(window, &self.mask, self.key, step.epoch))
        };
        let masked: Vec<_> = step.examples.iter().map(mask).collect();
        let n: usize = masked.iter().map(|(_, masked)| masked.positions.len()).sum();
        let seed = step.key.then("dropout").generator().bits();
        let dropout = Dropout::new(self.lm.model.config(), seed, step.number);
        let mut loss = Loss { sum: 0.0, n: n as u64 };
        for part in micro_batches(&masked, |(_, masked)| masked.pieces.len()) {
            self.batch.clear();
            for (key, masked) in part {
                masked.push_to(*key, &mut self.batch);
            }
            let weight = 1.0 / n.max(1) as f32;
            let Self { lm, batch, tape, .. } = self;
            loss.sum += lm.model.accumulate(device, batch, weight, dropout, tape, gradients)?;
        }
        Ok(loss)
    }

    fn evaluate(&mut self, device: &Device) -> Result<Option<Evaluation>, Error> {
        if self.dev.is_empty() {
            return Ok(None);
        }
        let mut loss = Loss::default();
        for part in micro_batches(&self.dev, |masked| masked.pieces.len()) {
            self.batch.clear();
            for masked in part {
                masked.push_to(0, &mut self.batch);
            }
            loss.sum += self.lm.model.loss(device, &self.batch, &mut self.tape, &mut self.out)?;
            loss.n += self.batch.positions.len() as u64;
        }
        Ok(Some(Evaluation { measure: Measure::Loss, value: loss.mean() }))
    }
}
