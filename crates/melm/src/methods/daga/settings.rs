//! The `[daga]` section of a plan.

use std::num::NonZeroUsize;

use schemars::JsonSchema;
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

/// The language model of the method `daga` (Ding et al. 2020), its training and its sampling.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DagaSettings {
    /// The size of a token's embedding, at most 8192.
    #[schemars(range(max = MAX_WIDTH))]
    pub embedding_size: NonZeroUsize,
    /// The hidden size of the LSTM, at most 8192.
    #[schemars(range(max = MAX_WIDTH))]
    pub hidden_size: NonZeroUsize,
    /// The number of layers of the LSTM, at most 64.
    #[schemars(range(max = MAX_LAYERS))]
    pub layers: NonZeroUsize,
    /// The dropout rate of embeddings and outputs, below 1.
    #[schemars(extend("exclusiveMaximum" = 1))]
    pub dropout: Rate,
    /// The number of times that a token must occur in gold to be in the vocabulary. Rarer tokens become `<unk>`.
    pub min_count: NonZeroUsize,
    /// How written sentences with `<unk>` are treated: `"kept"` (unless they have no other token) or `"dropped"`.
    pub unknown: UnknownTokens,
    /// The sampling temperature. Below 1, likely tokens are drawn more often than with 1; above 1, less often.
    #[schemars(extend("exclusiveMinimum" = 0))]
    pub temperature: f64,
    /// The maximum number of tokens and tags, at most 65536. A sentence that has not ended by then is rejected.
    #[schemars(range(max = MAX_LONGEST))]
    pub longest: NonZeroUsize,
    /// The maximum number of sentences written for each draft that is wanted.
    pub tries: NonZeroUsize,
    /// The settings of the training.
    #[serde(flatten)]
    pub training: TrainingSettings,
}

/// How written sentences with unknown tokens are treated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum UnknownTokens {
    /// The sentences are kept with the token `<unk>`, unless all their tokens are unknown.
    Kept,
    /// The sentences are rejected.
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
