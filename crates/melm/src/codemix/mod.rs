//! Code-mixing (section 2.5): replaces mentions by mentions of the same type in another language.
//!
//! The lexicon contains the mentions of every language by type, each with the mean of the aligned vectors of its
//! words. For every mention, [`Codemix`] draws one of the other languages, each with the same probability. It then
//! takes the mention of that language with the highest cosine similarity, or a random one.

mod lexicon;
mod mix;
mod vectors;

pub use lexicon::{LanguageCounts, LexiconCounts};
use lexicon::{Lexicon, NearestMention};
pub use mix::{Codemix, DonorChoice, new_sentences};
pub use vectors::MentionVectors;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::rate::Rate;

/// The settings of code-mixing.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CodemixSettings {
    /// The probability that a mention is replaced. At least one mention of each sentence is replaced.
    pub rate: Rate,
    /// The vectors by which mentions are compared: `"words"` (from files) or `"pieces"` (the piece embeddings of the
    /// masked language model).
    pub vectors: VectorKind,
}

/// Where word vectors come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum VectorKind {
    /// Files of aligned word vectors, one per language. The paper uses MUSE.
    Words,
    /// The mean embedding of the word's pieces in the pretrained masked language model.
    Pieces,
}
