//! Estimates the number of operations and the memory that are needed to train and to run a model.

use melm_nn::config::Config;
use melm_text::{Corpus, Sentence, Tag};

use crate::models::Pretrained;
use crate::training::{Budget, EvaluationInterval, MAX_BATCH_PIECES, TrainingSettings};

/// The number of operations per weight and piece in a forward pass: a multiplication and an addition.
pub(super) const FORWARD: f64 = 2.0;
/// The number of operations per weight and piece in a training step. The backward pass costs twice as much as the
/// forward pass.
const FORWARD_AND_BACKWARD: f64 = 6.0;
/// The size of an `f32` in bytes.
pub(super) const BYTES: f64 = 4.0;

/// The number of operations and the bytes of memory that a stage needs.
pub(super) struct Cost {
    pub(super) operations: f64,
    pub(super) bytes: f64,
}

/// The numbers of weights and activations of a model that generates whole sentences.
pub(super) struct GeneratorSize {
    /// The number of weights that a forward pass uses for one token.
    pub(super) used_weights: f64,
    /// The number of weights of the embedding. Looking up its rows takes almost no time, but the weights take memory.
    pub(super) embedding: f64,
    /// The number of activations per token that are stored for the backward pass.
    pub(super) activations: f64,
}

impl GeneratorSize {
    /// The cost of training on a corpus of `n_tokens` tokens or pieces. The cost of generating is small and left out.
    pub(super) fn training_cost(
        &self,
        settings: &TrainingSettings,
        train: &Corpus,
        n_tokens: f64,
    ) -> Cost {
        let n_sentences = train.sentences().len().max(1) as f64;
        let batch_size = settings.batch_size.get() as f64;
        let epochs = in_epochs(settings.budget, batch_size, n_sentences);
        let batch_tokens = (batch_size * n_tokens / n_sentences).min(MAX_BATCH_PIECES as f64);
        // Adam stores two moments for each weight, in addition to the weight and its gradient.
        let weights = 4.0 * (self.used_weights + self.embedding);
        let bytes = BYTES * (weights + batch_tokens * self.activations);
        Cost { operations: epochs * FORWARD_AND_BACKWARD * n_tokens * self.used_weights, bytes }
    }
}

/// Converts a budget to a number of epochs.
fn in_epochs(budget: Budget, batch_size: f64, n_sentences: f64) -> f64 {
    match budget {
        Budget::Epochs(n) => n.get() as f64,
        Budget::Updates(n) => n.get() as f64 * batch_size / n_sentences,
    }
}

/// The size of a corpus, split by the tokenizer of a model.
pub(super) struct CorpusSize {
    pub(super) sentences: f64,
    pub(super) pieces: f64,
    /// The number of pieces of entity tokens.
    pub(super) entity_pieces: f64,
}

/// Determines whether the markers of linearized sentences count as pieces.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Markers {
    Counted,
    Absent,
}

impl CorpusSize {
    /// Counts the pieces of a corpus. All counts are 0 if `corpus` is `None`. Sentences that the tokenizer cannot
    /// split are left out.
    pub(super) fn new(model: &Pretrained, corpus: Option<&Corpus>, markers: Markers) -> Self {
        let sentences = corpus.map(Corpus::sentences).unwrap_or_default();
        Self::from_sentences(model, sentences, markers, usize::MAX)
    }

    /// Counts the pieces of sentences. Sentences with more than `limit` pieces, and those that the tokenizer cannot
    /// split, are left out.
    pub(super) fn from_sentences(
        model: &Pretrained,
        sentences: &[Sentence],
        markers: Markers,
        limit: usize,
    ) -> Self {
        let mut size = Self { sentences: 0.0, pieces: 0.0, entity_pieces: 0.0 };
        let markers_per_token = if markers == Markers::Counted { 2.0 } else { 0.0 };
        for sentence in sentences {
            let Ok(encoded) = model.tokenizer().encode(sentence.tokens()) else { continue };
            if encoded.pieces.len() > limit {
                continue;
            }
            size.sentences += 1.0;
            size.pieces += encoded.pieces.len() as f64;
            for (pieces, tag) in encoded.tokens.iter().zip(sentence.tags()) {
                if *tag != Tag::Outside {
                    size.entity_pieces += pieces.len() as f64;
                    size.pieces += markers_per_token;
                }
            }
        }
        size
    }

    /// The size of two copies of the corpus.
    pub(super) fn doubled(&self) -> Self {
        self.scaled(2.0)
    }

    /// The size of `n` copies of the corpus.
    pub(super) fn scaled(&self, n: f64) -> Self {
        Self {
            sentences: n * self.sentences,
            pieces: n * self.pieces,
            entity_pieces: n * self.entity_pieces,
        }
    }

    /// The size of `n` sentences like those of the corpus.
    pub(super) fn with_sentences(&self, n: f64) -> Self {
        self.scaled(n / self.sentences.max(1.0))
    }

    /// The size of both corpora together.
    pub(super) fn plus(&self, other: &Self) -> Self {
        Self {
            sentences: self.sentences + other.sentences,
            pieces: self.pieces + other.pieces,
            entity_pieces: self.entity_pieces + other.entity_pieces,
        }
    }
}

/// The numbers of weights and activations of an encoder.
pub(super) struct EncoderSize {
    /// The number of weights of the layers. In a forward pass, every piece uses each of them once.
    pub(super) encoder: f64,
    /// The number of weights of the embedding, which is also the output layer that predicts masked pieces.
    pub(super) embedding: f64,
    /// The number of all weights.
    pub(super) all: f64,
    /// The number of activations per piece that are stored for the backward pass.
    pub(super) activations: f64,
}

impl EncoderSize {
    pub(super) fn new(model: &Pretrained) -> Self {
        Self::from_config(model.checkpoint().config())
    }

    fn from_config(config: &Config) -> Self {
        let hidden = config.hidden_size as f64;
        // The inner rows before the GELU, which are wider than after it if the feed-forward part is gated.
        let before = config.intermediate_outputs() as f64;
        let after = config.intermediate_size as f64;
        let layers = config.n_layers as f64;
        let encoder = layers * hidden * (4.0 * hidden + before + after);
        let embedding = config.vocab_size as f64 * hidden;
        let activations = layers * (9.0 * hidden + before);
        Self { encoder, embedding, all: encoder + embedding, activations }
    }

    /// The cost of training on `train` and of the evaluations on `dev`. `masked_per_sentence` is the number of pieces
    /// that are predicted in each sentence.
    pub(super) fn training_cost(
        &self,
        settings: &TrainingSettings,
        train: &CorpusSize,
        dev: &CorpusSize,
        masked_per_sentence: f64,
    ) -> Cost {
        let batch_size = settings.batch_size.get() as f64;
        let n_sentences = train.sentences.max(1.0);
        let epochs = in_epochs(settings.budget, batch_size, n_sentences);
        let evaluation_interval = match settings.evaluate_every {
            EvaluationInterval::Epochs(n) => n.get() as f64,
            EvaluationInterval::Other(budget) => in_epochs(budget, batch_size, n_sentences),
        };
        let predictions = train.sentences * masked_per_sentence * self.embedding;
        let training = FORWARD_AND_BACKWARD * (train.pieces * self.encoder + predictions);
        let evaluation = FORWARD * dev.pieces * self.encoder / evaluation_interval;
        let operations = epochs * (training + evaluation);

        let is_embedding_frozen = settings.freeze.freezes(melm_nn::params::TABLE);
        let frozen = if is_embedding_frozen { self.embedding } else { 0.0 };
        let trained = self.all - frozen;
        let batch_pieces = (batch_size * train.pieces / n_sentences).min(MAX_BATCH_PIECES as f64);
        let numbers = self.all + 2.0 * trained + self.encoder + batch_pieces * self.activations;
        Cost { operations, bytes: BYTES * numbers }
    }
}

#[cfg(test)]
#[path = "cost_tests.rs"]
mod tests;
