//! The settings of generation.

use std::num::{NonZeroU32, NonZeroUsize};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::mask::{GenerationMask, Unit};

/// The range of ranks from which a piece is chosen (`docs/fidelity.md` row 5). Rank 1 is the most probable allowed
/// piece.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "(usize, usize)", into = "(usize, usize)")]
#[schemars(extend("examples" = [[1, 5]]))]
pub struct Ranks {
    first: usize,
    last: usize,
}

/// The error for two numbers that are not valid ranks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("ranks are two numbers from 1 on, the first not above the last; found {0} and {1}")]
pub struct InvalidRanks(usize, usize);

impl Ranks {
    /// The first rank, counted from 1.
    pub(crate) fn first(self) -> usize {
        self.first
    }

    /// The last rank. It is the paper's k if the first rank is 1.
    pub fn last(self) -> usize {
        self.last
    }
}

impl TryFrom<(usize, usize)> for Ranks {
    type Error = InvalidRanks;

    fn try_from(ranks: (usize, usize)) -> Result<Self, InvalidRanks> {
        let (first, last) = ranks;
        let in_order = 1 <= first && first <= last;
        if in_order { Ok(Self { first, last }) } else { Err(InvalidRanks(first, last)) }
    }
}

impl From<Ranks> for (usize, usize) {
    fn from(ranks: Ranks) -> Self {
        (ranks.first, ranks.last)
    }
}

/// A sampling temperature: a number above 0 by which log-probabilities are divided.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "f64", into = "f64")]
pub struct Temperature(f64);

/// The error for a number that is not a valid temperature.
#[derive(Debug, Clone, Copy, PartialEq, thiserror::Error)]
#[error("a temperature is a number above 0, found {0}")]
pub struct InvalidTemperature(f64);

impl TryFrom<f64> for Temperature {
    type Error = InvalidTemperature;

    fn try_from(value: f64) -> Result<Self, InvalidTemperature> {
        if value > 0.0 && value.is_finite() {
            Ok(Self(value))
        } else {
            Err(InvalidTemperature(value))
        }
    }
}

impl From<Temperature> for f64 {
    fn from(temperature: Temperature) -> Self {
        temperature.0
    }
}

/// How a piece is chosen within the range of ranks. Written as `uniform` or `temperature-0.8`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
#[schemars(extend("examples" = ["uniform", "temperature-0.8"]))]
pub enum Sampling {
    /// Each piece has the same probability (the paper).
    #[default]
    Uniform,
    /// A piece of probability p is chosen with a probability in proportion to p^(1/T), where T is the temperature.
    Temperature(Temperature),
}

/// The error for a text that is not a valid [`Sampling`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("expected `uniform` or `temperature-0.8`, found `{0}`")]
pub struct InvalidSampling(String);

impl TryFrom<String> for Sampling {
    type Error = InvalidSampling;

    fn try_from(text: String) -> Result<Self, InvalidSampling> {
        let number = text.strip_prefix("temperature-").and_then(|t| t.parse::<f64>().ok());
        match (text.as_str(), number.map(Temperature::try_from)) {
            ("uniform", _) => Ok(Self::Uniform),
            (_, Some(Ok(temperature))) => Ok(Self::Temperature(temperature)),
            _ => Err(InvalidSampling(text)),
        }
    }
}

impl From<Sampling> for String {
    fn from(sampling: Sampling) -> Self {
        match sampling {
            Sampling::Uniform => "uniform".to_owned(),
            Sampling::Temperature(temperature) => format!("temperature-{}", temperature.0),
        }
    }
}

/// The order in which masked positions are filled.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum FillOrder {
    /// All positions at once, independently of each other (the paper).
    #[default]
    AtOnce,
    /// From left to right. Each prediction sees the pieces that were chosen before, so that the pieces of a word fit
    /// together.
    LeftToRight,
    /// From left to right within each mention, and all mentions of a sentence at the same time. Each prediction sees the
    /// pieces that were chosen before in its mention. This takes fewer steps than `left-to-right`.
    WithinMentions,
}

/// How sentences without a mention are treated (`docs/fidelity.md` row 17).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum WithoutMentions {
    /// No drafts are made of sentences without a mention.
    #[default]
    LeftOut,
    /// Each sentence is copied in every round, so that the share of sentences without a mention stays the same (the
    /// authors' code).
    Copied,
}

/// The `[generate]` section of a plan.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[expect(clippy::struct_excessive_bools, reason = "each is an independent option")]
pub struct GenerateSettings {
    /// The number of rounds of drafts (the paper's R).
    pub rounds: NonZeroU32,
    /// How positions are masked.
    pub mask: GenerationMask,
    /// The range of ranks from which a piece is chosen.
    pub ranks: Ranks,
    /// How a piece is chosen within these ranks.
    pub sampling: Sampling,
    /// The order in which positions are filled.
    pub order: FillOrder,
    /// If true, all pieces of a masked token are replaced by one `<mask>`, whatever `mask.unit` is. The new token is a single
    /// piece that begins a word, so that it is not put together from parts of different words.
    pub whole_words: bool,
    /// If true, a piece is replaced only by pieces of the same casing.
    pub keep_case: bool,
    /// If true, a token is replaced only by pieces of the same script.
    pub keep_script: bool,
    /// If true, a new token of a mention may not equal the token beside it, unless the source repeats the token there
    /// too. Case is ignored. Pieces that would repeat a token are not chosen, and drafts that still repeat one, also
    /// drafts with mentions of other sentences, are rejected.
    pub avoid_repeats: bool,
    /// If true, a new token of a mention may not equal a token of another mention of the sentence, unless the source
    /// repeats the token there too. Case is ignored. Pieces that would repeat a token are not chosen.
    pub distinct_mentions: bool,
    /// If true, some tokens of a mention of several tokens are not rewritten: numbers and punctuation, lower-case tokens
    /// in a mention that has an upper-case letter, and tokens that gold has at least as often outside mentions as inside.
    pub keep_function_words: bool,
    /// The maximum number of tokens of a mention that the model rewrites. Longer mentions, such as titles, are left as they
    /// are; `label-wise` and `melm-both` may still replace them by other mentions. 0: no limit.
    pub longest_mention: usize,
    /// The margin of the score of a rewritten mention. The score is the mean log-probability of its pieces according to
    /// the model, each predicted from all tokens around it, minus that of the old mention. Drafts with a score below
    /// minus this value are rejected. 0: mentions are not scored. Scoring takes about as long as fine-tuning.
    #[schemars(range(min = 0))]
    pub score_margin: f64,
    /// Texts that are not allowed as a piece or as a new token.
    pub banned: Vec<String>,
    /// How sentences without a mention are treated: `"left-out"` or `"copied"`.
    pub without_mentions: WithoutMentions,
    /// The maximum number of pieces in a batch. It does not affect the drafts.
    #[serde(skip, default = "pieces_per_batch")]
    pub pieces_per_batch: NonZeroUsize,
}

impl GenerateSettings {
    /// Returns the first key whose value is not valid, and a description of the allowed values.
    pub(crate) fn first_invalid(&self) -> Option<(&'static str, String)> {
        let is_valid = self.score_margin >= 0.0 && self.score_margin.is_finite();
        (!is_valid).then(|| ("score_margin", "a number from 0 on".to_owned()))
    }

    /// Returns the settings for masking. Whole words are masked as tokens.
    pub(super) fn effective_mask(&self) -> GenerationMask {
        let unit = if self.whole_words { Unit::Token } else { self.mask.unit };
        GenerationMask { unit, ..self.mask }
    }

    /// Returns true if rewritten mentions are scored.
    pub(crate) fn has_scores(&self) -> bool {
        self.score_margin > 0.0
    }

    /// Returns true if a mention with this number of tokens is too long to be rewritten.
    pub(super) fn is_too_long(&self, n_tokens: usize) -> bool {
        self.longest_mention > 0 && n_tokens > self.longest_mention
    }
}

/// Large enough for efficient matrix products, small enough for the memory of small machines.
const PIECES_PER_BATCH: NonZeroUsize = NonZeroUsize::new(2_048).expect("not 0");

fn pieces_per_batch() -> NonZeroUsize {
    PIECES_PER_BATCH
}

/// The paper's R (section 3.2).
const ROUNDS: NonZeroU32 = NonZeroU32::new(3).expect("not 0");

impl Default for GenerateSettings {
    /// The paper's settings, except that masks are drawn for pieces: uniform among the five most probable pieces
    /// (section 2.3).
    fn default() -> Self {
        Self {
            rounds: ROUNDS,
            mask: GenerationMask::default(),
            ranks: Ranks { first: 1, last: 5 },
            sampling: Sampling::default(),
            order: FillOrder::default(),
            whole_words: false,
            keep_case: false,
            keep_script: false,
            avoid_repeats: false,
            distinct_mentions: false,
            keep_function_words: false,
            longest_mention: 0,
            score_margin: 0.0,
            banned: Vec::new(),
            without_mentions: WithoutMentions::default(),
            pieces_per_batch: PIECES_PER_BATCH,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn invalid_settings_are_refused() {
        assert!(Ranks::try_from((0, 5)).is_err() && Ranks::try_from((3, 2)).is_err());
        assert!(Temperature::try_from(0.0).is_err() && Temperature::try_from(f64::NAN).is_err());
        let read = |text: &str| serde_json::from_str::<GenerateSettings>(text);
        let settings = read(r#"{"ranks": [2, 5], "sampling": "temperature-0.5"}"#).unwrap();
        assert_eq!((settings.ranks.first(), settings.ranks.last()), (2, 5));
        assert!(read(r#"{"sampling": "temperature-0"}"#).is_err());
        assert!(read(r#"{"ranks": [5, 2]}"#).is_err() && read(r#"{"rank": [1, 2]}"#).is_err());
    }
}
