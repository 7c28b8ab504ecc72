//! The training examples of the encoder-decoder, which learns to write a whole sentence from its first tokens.

use melm_nn::device::Device;
use melm_nn::dropout::{Dropout, DropoutRates};
use melm_nn::gradients::Gradients;
use melm_nn::params::Parameters;
use melm_nn::seq2seq::{Seq2Seq, Seq2SeqBatch, Seq2SeqTape};

use super::vocabulary::{LinearizedSentence, Vocabulary};
use crate::Error;
use crate::random::StreamKey;
use crate::stage::OnBatch;
use crate::training::{Evaluation, Learner, LearnerBatch, Loss, mean_loss};

/// The encoder-decoder and the linearized sentences it learns from.
pub(super) struct TrainingSet {
    pub(super) model: Seq2Seq,
    pub(super) vocabulary: Vocabulary,
    pub(super) train: Vec<LinearizedSentence>,
    /// The dev set. The number of tokens that the encoder sees of a sentence is the same in every epoch.
    pub(super) dev: Vec<Example>,
    /// The dropout rates of hidden states and of attention weights.
    pub(super) rates: DropoutRates,
    /// The random stream that draws how many tokens of a sentence the encoder sees.
    pub(super) key: StreamKey,
    pub(super) tape: Seq2SeqTape,
}

/// The source sequence, which the encoder reads, and the target sequence, which the decoder writes.
pub(super) struct Example {
    key: u64,
    source: Vec<u32>,
    target: Vec<u32>,
}

impl Example {
    /// Draws how many of a sentence's first tokens the encoder sees: from none to all but the last.
    pub(super) fn draw(
        vocabulary: &Vocabulary,
        sentence: &LinearizedSentence,
        number: usize,
        key: StreamKey,
    ) -> Self {
        let n_shown = key.at(number as u64).generator().below(sentence.n_tokens());
        let (source, target) = (vocabulary.source(sentence, n_shown), vocabulary.target(sentence));
        Self { key: number as u64, source, target }
    }

    fn n_pieces(&self) -> usize {
        self.source.len() + self.target.len()
    }
}

fn to_batch(examples: &[Example]) -> Seq2SeqBatch {
    let mut batch = Seq2SeqBatch::default();
    for example in examples {
        batch.push(&example.source, &example.target, example.key);
    }
    batch
}

impl Learner for TrainingSet {
    type Example = Example;

    fn parameters(&mut self) -> &mut Parameters {
        self.model.parameters_mut()
    }

    fn n_examples(&self) -> usize {
        self.train.len()
    }

    fn example(&self, number: usize, epoch: u64) -> Example {
        let key = self.key.then("cut").at(epoch);
        Example::draw(&self.vocabulary, &self.train[number], number, key)
    }

    fn n_pieces(&self, example: &Example) -> usize {
        example.n_pieces()
    }

    fn n_losses(&self, example: &Example) -> usize {
        example.target.len()
    }

    fn dropout(&self, seed: u64, step: u64) -> Dropout {
        Dropout::with_rates(self.rates, seed, step)
    }

    fn accumulate(
        &mut self,
        device: &Device,
        batch: &LearnerBatch<'_, Example>,
        gradients: &mut Gradients,
    ) -> Result<f64, Error> {
        let LearnerBatch { examples, scale, dropout } = *batch;
        let Self { model, tape, .. } = self;
        Ok(model.accumulate(device, &to_batch(examples), scale, dropout, tape, gradients)?)
    }

    fn evaluate(
        &mut self,
        device: &Device,
        on_batch: OnBatch<'_>,
    ) -> Result<Option<Evaluation>, Error> {
        let loss = |examples: &[Example]| {
            let batch = to_batch(examples);
            let sum = self.model.loss(device, &batch, &mut self.tape)?;
            Ok(Loss { sum, n: batch.targets.len() as u64 })
        };
        mean_loss(&self.dev, Example::n_pieces, loss, on_batch)
    }
}
