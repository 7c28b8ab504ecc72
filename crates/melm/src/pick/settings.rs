//! The settings of picking: the section `pick` of the plan.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::rate::Rate;

/// Which sentences are picked for labelling.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PickSettings {
    /// The score of a sentence. Sentences with a high score are picked: `"entropy"`, `"mentions"`, `"probability"` or
    /// `"random"`.
    pub score: PickScore,
    /// The score of a sentence is divided by its number of tokens to this power. With 0 the tokens of a sentence add up,
    /// so that long sentences come first. With 1 the score is a mean over tokens, so that short sentences come first. The
    /// score `"random"` ignores it.
    pub length_power: Rate,
    /// How much less a sentence counts that is similar to one that was picked before it: its score is multiplied by 1
    /// minus this value times the similarity, which is a number from 0 to 1. 0 means that similarity does not matter, but
    /// near-duplicates are never picked.
    pub diversity: Rate,
}

impl Default for PickSettings {
    /// The values of all presets.
    fn default() -> Self {
        Self {
            score: PickScore::Mentions,
            length_power: Rate::constant(0.5),
            diversity: Rate::constant(1.0),
        }
    }
}

/// The score of a sentence.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum PickScore {
    /// The entropy of the votes for the tag of a token, summed over tokens.
    Entropy,
    /// The entropy of the votes for and against a mention, summed over all mentions that any tagger predicts.
    Mentions,
    /// The negative logarithm of the probability that a tagger gives to its own tags, as a mean over taggers.
    Probability,
    /// A random number. The panel only suggests the tags.
    Random,
}
