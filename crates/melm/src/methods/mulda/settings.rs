//! The `[mulda]` section of a plan.

use std::num::NonZeroUsize;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::plan::check_limits;
use crate::rate::Rate;
use crate::training::TrainingSettings;

/// The largest `width`; mBART-large has 1,024.
const MAX_WIDTH: usize = 8_192;
/// The largest `layers`; mBART-large has 12.
const MAX_LAYERS: usize = 64;
/// The largest `longest`; mBART-large has 1,024.
const MAX_LONGEST: usize = 65_536;
/// The largest `beams`; the authors use 5.
const MAX_BEAMS: usize = 1_024;

/// The encoder-decoder of the method `mulda` (Liu et al. 2021), its training and its generation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MuldaSettings {
    /// The language of a corpus that names no languages, as an mBART code such as `en_XX`.
    #[schemars(extend("examples" = ["en_XX"]))]
    pub language: String,
    /// The width of the model, at most 8192. Not used with a pretrained model.
    #[schemars(range(max = MAX_WIDTH))]
    pub width: NonZeroUsize,
    /// The number of layers of the encoder and of the decoder, at most 64. Not used with a pretrained model.
    #[schemars(range(max = MAX_LAYERS))]
    pub layers: NonZeroUsize,
    /// The number of attention heads, which must divide the width. Not used with a pretrained model.
    pub heads: NonZeroUsize,
    /// The dropout rate of hidden states, below 1.
    #[schemars(extend("exclusiveMaximum" = 1))]
    pub dropout: Rate,
    /// The dropout rate of attention weights, below 1.
    #[schemars(extend("exclusiveMaximum" = 1))]
    pub attention_dropout: Rate,
    /// The number of beams of the beam search, at most 1024. 0 means sampling instead of beam search.
    #[schemars(range(max = MAX_BEAMS))]
    pub beams: usize,
    /// The sampling temperature. Below 1, likely pieces are drawn more often than with 1; above 1, less often.
    #[schemars(extend("exclusiveMinimum" = 0))]
    pub temperature: f64,
    /// The maximum number of pieces, at most 65536. A sentence that has not ended by then is rejected.
    #[schemars(range(max = MAX_LONGEST))]
    pub longest: NonZeroUsize,
    /// The maximum number of sentences written for each draft that is wanted.
    pub tries: NonZeroUsize,
    /// The settings of the training.
    #[serde(flatten)]
    pub training: TrainingSettings,
}

impl MuldaSettings {
    /// Returns the first key with an invalid value and the values it may have, or `None` if all are valid.
    pub(crate) fn first_invalid(&self) -> Option<(&'static str, String)> {
        let too_large = check_limits(&[
            ("width", self.width.get(), MAX_WIDTH),
            ("layers", self.layers.get(), MAX_LAYERS),
            ("longest", self.longest.get(), MAX_LONGEST),
            ("beams", self.beams, MAX_BEAMS),
        ]);
        too_large.or_else(|| self.invalid_value().map(|(key, expected)| (key, expected.to_owned())))
    }

    fn invalid_value(&self) -> Option<(&'static str, &'static str)> {
        let checks = [
            (self.dropout.value() < 1.0, "dropout", "below 1"),
            (self.attention_dropout.value() < 1.0, "attention_dropout", "below 1"),
            (
                self.temperature > 0.0 && self.temperature.is_finite(),
                "temperature",
                "a number above 0",
            ),
            (
                self.width.get().is_multiple_of(self.heads.get()),
                "heads",
                "a divisor of `mulda.width`",
            ),
            (!self.language.is_empty(), "language", "a code such as `en_XX`"),
        ];
        let own = checks.into_iter().find(|(holds, ..)| !holds);
        own.map(|(_, key, expected)| (key, expected)).or_else(|| self.training.first_invalid())
    }
}
