//! The `[daga]` section of a plan.

use std::num::NonZeroUsize;

use serde::{Deserialize, Serialize};

use crate::rate::Rate;
use crate::training::TrainingSettings;

/// The language model of the method `daga`, how it is trained and how it writes (Ding et al. 2020).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DagaSettings {
    /// Width of an embedded token.
    pub embedding_size: NonZeroUsize,
    /// Width of the LSTM.
    pub hidden_size: NonZeroUsize,
    /// Its layers.
    pub layers: NonZeroUsize,
    /// The rate of dropout on embedded tokens and on outputs, below 1.
    pub dropout: Rate,
    /// How often a token must occur in gold to have a row of its own; rarer ones are `<unk>`.
    pub min_count: NonZeroUsize,
    /// What becomes of a written sentence with `<unk>`: `"kept"` unless it has nothing else, or `"dropped"`.
    pub unknown: UnknownTokens,
    /// Below 1 the likely tokens are drawn more often, above 1 less.
    pub temperature: f64,
    /// Tokens and tags after which a sentence that has not ended is given up.
    pub longest: NonZeroUsize,
    /// How many sentences are written at most for each that is wanted.
    pub tries: NonZeroUsize,
    /// How it is trained.
    #[serde(flatten)]
    pub training: TrainingSettings,
}

/// What becomes of a written sentence with a token that nobody knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum UnknownTokens {
    /// It stays, with the token `<unk>`, unless all its tokens are unknown.
    Kept,
    /// It is no draft.
    Dropped,
}

impl DagaSettings {
    /// The first key with an invalid value, and the values it may have. `None` if all are valid.
    pub(crate) fn first_invalid(&self) -> Option<(&'static str, &'static str)> {
        if self.dropout.value() >= 1.0 {
            Some(("dropout", "below 1"))
        } else if !(self.temperature > 0.0 && self.temperature.is_finite()) {
            Some(("temperature", "a number above 0"))
        } else {
            self.training.first_invalid()
        }
    }
}
