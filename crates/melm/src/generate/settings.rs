//! How drafts are generated.

use std::num::{NonZeroU32, NonZeroUsize};

use serde::{Deserialize, Serialize};

use crate::mask::GenerationMask;

/// Which of the allowed pieces, counted from the likeliest, may be chosen (FIDELITY row 5).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "(usize, usize)", into = "(usize, usize)")]
pub struct Ranks {
    first: usize,
    last: usize,
}

/// The numbers are not two ranks in order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("ranks are two numbers from 1 on, the first not above the last; found {0} and {1}")]
pub struct NotRanks(usize, usize);

impl Ranks {
    /// The first rank, from 1.
    pub fn first(self) -> usize {
        self.first
    }

    /// The last rank: the paper's k, if the first is 1.
    pub fn last(self) -> usize {
        self.last
    }
}

impl TryFrom<(usize, usize)> for Ranks {
    type Error = NotRanks;

    fn try_from((first, last): (usize, usize)) -> Result<Self, NotRanks> {
        let in_order = 1 <= first && first <= last;
        if in_order { Ok(Self { first, last }) } else { Err(NotRanks(first, last)) }
    }
}

impl From<Ranks> for (usize, usize) {
    fn from(ranks: Ranks) -> Self {
        (ranks.first, ranks.last)
    }
}

/// A number above 0 by which log-probabilities are divided.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "f64", into = "f64")]
pub struct Temperature(f64);

/// The number is not above 0, or not a number.
#[derive(Debug, Clone, Copy, PartialEq, thiserror::Error)]
#[error("a temperature is a number above 0, found {0}")]
pub struct NotATemperature(f64);

impl TryFrom<f64> for Temperature {
    type Error = NotATemperature;

    fn try_from(value: f64) -> Result<Self, NotATemperature> {
        if value > 0.0 && value.is_finite() { Ok(Self(value)) } else { Err(NotATemperature(value)) }
    }
}

impl From<Temperature> for f64 {
    fn from(temperature: Temperature) -> Self {
        temperature.0
    }
}

/// How one of the pieces within the ranks is chosen: as text `uniform` or `temperature-0.8`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Sampling {
    /// Each is equally likely (the paper).
    #[default]
    Uniform,
    /// In proportion to p^(1/T).
    Temperature(Temperature),
}

/// The text says not how to choose.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("expected `uniform` or `temperature-0.8`, found `{0}`")]
pub struct NotASampling(String);

impl TryFrom<String> for Sampling {
    type Error = NotASampling;

    fn try_from(text: String) -> Result<Self, NotASampling> {
        let number = text.strip_prefix("temperature-").and_then(|t| t.parse::<f64>().ok());
        match (text.as_str(), number.map(Temperature::try_from)) {
            ("uniform", _) => Ok(Self::Uniform),
            (_, Some(Ok(temperature))) => Ok(Self::Temperature(temperature)),
            _ => Err(NotASampling(text)),
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

/// In which order masked pieces are guessed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FillOrder {
    /// All at once, none knowing of the others (the paper).
    #[default]
    AtOnce,
    /// Each given those to its left: pieces of one word then fit together.
    LeftToRight,
}

/// What becomes of sentences without a mention (FIDELITY row 17).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum WithoutMentions {
    /// There is no draft of them.
    #[default]
    LeftOut,
    /// Each is copied every round (the authors' code): they keep their share of the sentences.
    Copied,
}

/// How drafts are generated.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct GenerateSettings {
    /// The paper's R: how many drafts each sentence gets.
    pub rounds: NonZeroU32,
    /// What is masked.
    pub mask: GenerationMask,
    /// Which pieces may be chosen.
    pub ranks: Ranks,
    /// How one of them is chosen.
    pub sampling: Sampling,
    /// In which order.
    pub order: FillOrder,
    /// Whether a piece is replaced only by one of the same casing: all capitals, a capital first, none.
    pub keep_case: bool,
    /// Whether a token is replaced only by one of the same script.
    pub keep_script: bool,
    /// Texts that no guessed piece and no new token may be.
    pub banned: Vec<String>,
    /// What becomes of sentences without a mention: `"left-out"` or `"copied"`.
    pub without_mentions: WithoutMentions,
    /// Pieces that the model reads at a time; has no influence on what is drawn.
    #[serde(skip, default = "pieces_per_batch")]
    pub pieces_per_batch: NonZeroUsize,
}

/// Enough rows for the products to be efficient, few enough for small machines.
const PIECES_PER_BATCH: NonZeroUsize = NonZeroUsize::new(2_048).expect("it is not 0");

fn pieces_per_batch() -> NonZeroUsize {
    PIECES_PER_BATCH
}

/// Section 4.1.
const ROUNDS: NonZeroU32 = NonZeroU32::new(3).expect("it is not 0");

impl Default for GenerateSettings {
    /// The paper's: uniform among the five likeliest (section 2.3).
    fn default() -> Self {
        Self {
            rounds: ROUNDS,
            mask: GenerationMask::default(),
            ranks: Ranks { first: 1, last: 5 },
            sampling: Sampling::default(),
            order: FillOrder::default(),
            keep_case: false,
            keep_script: false,
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
    fn settings_that_make_no_sense_are_refused() {
        assert!(Ranks::try_from((0, 5)).is_err() && Ranks::try_from((3, 2)).is_err());
        assert!(Temperature::try_from(0.0).is_err() && Temperature::try_from(f64::NAN).is_err());
        let read = |text: &str| serde_json::from_str::<GenerateSettings>(text);
        let settings = read(r#"{"ranks": [2, 5], "sampling": "temperature-0.5"}"#).unwrap();
        assert_eq!((settings.ranks.first(), settings.ranks.last()), (2, 5));
        assert!(read(r#"{"sampling": "temperature-0"}"#).is_err());
        assert!(read(r#"{"ranks": [5, 2]}"#).is_err() && read(r#"{"rank": [1, 2]}"#).is_err());
    }
}
