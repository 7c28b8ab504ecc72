//! The `[daga]` section of a plan.

use std::num::NonZeroUsize;

use serde::{Deserialize, Serialize};

use crate::plan::check_limits;
use crate::rate::Rate;
use crate::training::TrainingSettings;

/// The largest `embedding_size` and `hidden_size`; the authors use 300 and 512.
const MAX_WIDTH: usize = 8_192;
/// The largest `layers`; the authors use 2.
const MAX_LAYERS: usize = 64;
/// The largest `longest`.
const MAX_LONGEST: usize = 65_536;

/// The language model of the method `daga`, how it is trained and how it writes (Ding et al. 2020).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DagaSettings {
    /// Width of an embedded token; at most 8192.
    pub embedding_size: NonZeroUsize,
    /// Width of the LSTM; at most 8192.
    pub hidden_size: NonZeroUsize,
    /// Layers of the LSTM; at most 64.
    pub layers: NonZeroUsize,
    /// The rate of dropout on embedded tokens and on outputs, below 1.
    pub dropout: Rate,
    /// How often a token must occur in gold to have a row of its own; rarer ones are `<unk>`.
    pub min_count: NonZeroUsize,
    /// What becomes of a written sentence with `<unk>`: `"kept"` unless it has nothing else, or `"dropped"`.
    pub unknown: UnknownTokens,
    /// Below 1 the likely tokens are drawn more often, above 1 less.
    pub temperature: f64,
    /// Tokens and tags after which a sentence that has not ended is given up; at most 65536.
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
    /// Returns the first key with an invalid value and the values it may have, or `None` if all are valid.
    pub(crate) fn first_invalid(&self) -> Option<(&'static str, String)> {
        let too_large = check_limits(&[
            ("embedding_size", self.embedding_size.get(), MAX_WIDTH),
            ("hidden_size", self.hidden_size.get(), MAX_WIDTH),
            ("layers", self.layers.get(), MAX_LAYERS),
            ("longest", self.longest.get(), MAX_LONGEST),
        ]);
        too_large.or_else(|| self.invalid_value().map(|(key, expected)| (key, expected.to_owned())))
    }

    fn invalid_value(&self) -> Option<(&'static str, &'static str)> {
        if self.dropout.value() >= 1.0 {
            Some(("dropout", "below 1"))
        } else if !(self.temperature > 0.0 && self.temperature.is_finite()) {
            Some(("temperature", "a number above 0"))
        } else {
            self.training.first_invalid()
        }
    }
}
