//! The training examples of a tagger.

use melm_nn::device::Device;
use melm_nn::dropout::Dropout;
use melm_nn::gradients::Gradients;
use melm_nn::params::Parameters;
use melm_nn::tagger::{HeadKind, TaggedBatch, TaggerTape};
use melm_text::{Corpus, Tag};

use super::encode::WindowInput;
use super::score::EvaluationSet;
use super::{TaggerModel, Truncation};
use crate::Error;
use crate::stage::OnBatch;
use crate::training::{Evaluation, Learner, LearnerBatch, Metric};

/// A tagger and its training examples.
pub(super) struct TrainingSet {
    tagger: TaggerModel,
    examples: Vec<Example>,
    truncation: Truncation,
    dev: Option<EvaluationSet>,
    tape: TaggerTape,
    batch: TaggedBatch,
}

struct Example {
    window: WindowInput,
    /// The tag number of each token that the window owns.
    tags: Vec<u32>,
}

impl TrainingSet {
    pub(super) fn new(
        tagger: TaggerModel,
        train: &Corpus,
        dev: Option<&Corpus>,
    ) -> Result<Self, Error> {
        let mut truncation = Truncation::default();
        let mut examples = Vec::new();
        for (at, sentence) in train.sentences().iter().enumerate() {
            let tags = sentence.tags();
            let may_cut = |at: usize| tags[at - 1] == Tag::Outside || tags[at] == Tag::Outside;
            for window in tagger.windows(at, sentence.tokens(), may_cut, &mut truncation)? {
                let number = |tag: &Tag| {
                    tagger.tags.number(*tag).expect("the tags are made for this corpus")
                };
                let tags = tags[window.own.clone()].iter().map(number).collect();
                examples.push(Example { window, tags });
            }
        }
        let tape = TaggerTape::for_training(tagger.model.config());
        let dev = dev.map(|dev| EvaluationSet::new(dev, tagger.tags.types()));
        let batch = TaggedBatch::default();
        Ok(Self { tagger, examples, truncation, dev, tape, batch })
    }

    pub(super) fn truncation(&self) -> Truncation {
        self.truncation
    }

    pub(super) fn into_tagger(self) -> TaggerModel {
        self.tagger
    }
}

impl Learner for TrainingSet {
    type Example = usize;

    fn parameters(&mut self) -> &mut Parameters {
        self.tagger.model.parameters_mut()
    }

    fn n_examples(&self) -> usize {
        self.examples.len()
    }

    fn example(&self, number: usize, _: u64) -> usize {
        number
    }

    fn n_pieces(&self, example: &usize) -> usize {
        self.examples[*example].window.pieces.len()
    }

    /// A CRF has one loss for each window. A linear head has one loss for each token.
    fn n_losses(&self, example: &usize) -> usize {
        match self.tagger.model.settings().kind {
            HeadKind::Crf => 1,
            HeadKind::Linear => self.examples[*example].tags.len(),
        }
    }

    fn dropout(&self, seed: u64, step: u64) -> Dropout {
        Dropout::new(self.tagger.model.config(), seed, step)
    }

    fn accumulate(
        &mut self,
        device: &Device,
        batch: &LearnerBatch<'_, usize>,
        gradients: &mut Gradients,
    ) -> Result<f64, Error> {
        self.batch.clear();
        for number in batch.examples {
            let Example { window, tags } = &self.examples[*number];
            self.batch.push(*number as u64, &window.pieces, &window.first_pieces, tags);
        }
        let LearnerBatch { scale, dropout, .. } = *batch;
        let Self { tagger, batch, tape, .. } = self;
        Ok(tagger.model.accumulate(device, batch, scale, dropout, tape, gradients)?)
    }

    fn evaluate(
        &mut self,
        device: &Device,
        on_batch: OnBatch<'_>,
    ) -> Result<Option<Evaluation>, Error> {
        let Some(dev) = &self.dev else { return Ok(None) };
        let scores = dev.score(&self.tagger, device, on_batch)?.scores;
        Ok(Some(Evaluation { metric: Metric::F1, value: scores.micro().rates().f1 }))
    }
}
