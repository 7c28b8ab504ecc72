//! The training set of a masked entity language model. The loss is computed for the masked pieces only.

use melm_nn::device::Device;
use melm_nn::dropout::Dropout;
use melm_nn::gradients::Gradients;
use melm_nn::mlm::{MaskedBatch, MaskedLmTape, Predictions};
use melm_nn::params::Parameters;

use super::{EntityLm, FinetuneSettings};
use crate::Error;
use crate::linearize::LinearizedCorpus;
use crate::mask::{Masked, TrainingMask};
use crate::random::StreamKey;
use crate::stage::OnBatch;
use crate::training::{Evaluation, Learner, LearnerBatch, Loss, mean_loss};

/// The number of masks drawn for each dev sentence. With a single mask, the losses of different epochs are hard to
/// compare.
const DEV_DRAWS: u64 = 2;

/// The model that is fine-tuned, and its examples.
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

/// A training window with the masks that it has in one epoch.
pub(super) struct MaskedWindow {
    number: usize,
    masked: Masked,
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
            let mask = |window| lm.masker.mask_for_training(window, &settings.mask, dev_key, draw);
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
    type Example = MaskedWindow;

    fn parameters(&mut self) -> &mut Parameters {
        self.lm.model.parameters_mut()
    }

    fn n_examples(&self) -> usize {
        self.train.windows.len()
    }

    fn example(&self, number: usize, epoch: u64) -> MaskedWindow {
        let window = &self.train.windows[number];
        let masked = self.lm.masker().mask_for_training(window, &self.mask, self.key, epoch);
        MaskedWindow { number, masked }
    }

    fn n_pieces(&self, example: &MaskedWindow) -> usize {
        example.masked.pieces.len()
    }

    fn n_losses(&self, example: &MaskedWindow) -> usize {
        example.masked.positions.len()
    }

    fn dropout(&self, seed: u64, step: u64) -> Dropout {
        Dropout::new(self.lm.model.config(), seed, step)
    }

    fn accumulate(
        &mut self,
        device: &Device,
        batch: &LearnerBatch<'_, MaskedWindow>,
        gradients: &mut Gradients,
    ) -> Result<f64, Error> {
        let LearnerBatch { examples, scale, dropout } = *batch;
        let Self { lm, batch, tape, .. } = self;
        batch.clear();
        for example in examples {
            example.masked.push_to(example.number as u64, batch);
        }
        Ok(lm.model.accumulate(device, batch, scale, dropout, tape, gradients)?)
    }

    fn evaluate(
        &mut self,
        device: &Device,
        on_batch: OnBatch<'_>,
    ) -> Result<Option<Evaluation>, Error> {
        let Self { lm, dev, batch, tape, out, .. } = self;
        mean_loss(
            dev,
            |masked| masked.pieces.len(),
            |examples| {
                batch.clear();
                for masked in examples {
                    masked.push_to(0, batch);
                }
                let sum = lm.model.loss(device, batch, tape, out)?;
                Ok(Loss { sum, n: batch.positions.len() as u64 })
            },
            on_batch,
        )
    }
}
