//! What a tagger learns from, and how it is examined.

use melm_nn::device::Device;
use melm_nn::dropout::Dropout;
use melm_nn::gradients::Gradients;
use melm_nn::params::Parameters;
use melm_nn::tagger::{HeadKind, TaggedBatch, TaggerTape};
use melm_text::{Corpus, Tag};

use super::encode::View;
use super::score::Exam;
use super::{Cuts, Tagger};
use crate::Error;
use crate::fit::{Evaluation, Learner, Loss, Measure, Step, micro_batches};

/// The examples of a training, and the tagger that learns.
pub(super) struct Lessons {
    tagger: Tagger,
    examples: Vec<Example>,
    cuts: Cuts,
    dev: Option<Exam>,
    tape: TaggerTape,
    batch: TaggedBatch,
}

struct Example {
    view: View,
    /// The tags of its own tokens.
    tags: Vec<u32>,
}

impl Lessons {
    pub(super) fn new(tagger: Tagger, train: &Corpus, dev: Option<&Corpus>) -> Result<Self, Error> {
        let mut cuts = Cuts::default();
        let mut examples = Vec::new();
        for (at, sentence) in train.sentences().iter().enumerate() {
            let tags = sentence.tags();
            let may_cut = |at: usize| tags[at - 1] == Tag::Outside || tags[at] == Tag::Outside;
            for view in tagger.views((at, sentence.tokens()), may_cut, &mut cuts)? {
                let number = |tag: &Tag| {
                    tagger.tags.number(*tag).expect("the tags are made for this corpus")
                };
                let tags = tags[view.own.clone()].iter().map(number).collect();
                examples.push(Example { view, tags });
            }
        }
        let tape = TaggerTape::for_training(tagger.model.config());
        let dev = dev.map(|dev| Exam::new(dev, tagger.tags.types()));
        let batch = TaggedBatch::default();
        Ok(Self { tagger, examples, cuts, dev, tape, batch })
    }

    pub(super) fn cuts(&self) -> Cuts {
        self.cuts
    }

    pub(super) fn into_tagger(self) -> Tagger {
        self.tagger
    }

    /// What the loss of a step is a mean over: sentences with a CRF, else tokens.
    fn n_losses(&self, examples: &[usize]) -> usize {
        match self.tagger.model.settings().kind {
            HeadKind::Crf => examples.len(),
            HeadKind::Linear => examples.iter().map(|at| self.examples[*at].tags.len()).sum(),
        }
    }
}

impl Learner for Lessons {
    fn parameters(&self) -> &Parameters {
        self.tagger.model.parameters()
    }

    fn parameters_mut(&mut self) -> &mut Parameters {
        self.tagger.model.parameters_mut()
    }

    fn n_examples(&self) -> usize {
        self.examples.len()
    }

    fn accumulate(
        &mut self,
        device: &Device,
        step: &Step<'_>,
        gradients: &mut Gradients,
    ) -> Result<Loss, Error> {
        let n = self.n_losses(step.examples);
        let weight = 1.0 / n.max(1) as f32;
        let seed = step.key.then("dropout").generator().bits();
        let dropout = Dropout::new(self.tagger.model.config(), seed, step.number);
        let mut loss = Loss { sum: 0.0, n: n as u64 };
        let n_pieces = |at: &usize| self.examples[*at].view.pieces.len();
        for part in micro_batches(step.examples, n_pieces) {
            self.batch.clear();
            for at in part {
                let Example { view, tags } = &self.examples[*at];
                self.batch.push(*at as u64, &view.pieces, &view.first_pieces, tags);
            }
            let Self { tagger, batch, tape, .. } = self;
            loss.sum += tagger.model.accumulate(device, batch, weight, dropout, tape, gradients)?;
        }
        Ok(loss)
    }

    fn evaluate(&mut self, device: &Device) -> Result<Option<Evaluation>, Error> {
        let Some(dev) = &self.dev else { return Ok(None) };
        let scores = dev.score(&self.tagger, device)?.scores;
        Ok(Some(Evaluation { measure: Measure::F1, value: scores.micro().rates().f1 }))
    }
}
