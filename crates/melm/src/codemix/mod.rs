//! Code-mixing (section 2.5): a mention gives way to one of its type in another language.
//!
//! The [`Lexicon`] holds the mentions of every language by type, each with the mean of its words' aligned vectors;
//! [`Codemix`] draws a target language for every mention, uniformly among the others, and takes the mention with the
//! highest cosine there, or any.

mod lexicon;
mod mix;
mod vectors;

pub use lexicon::{LanguageCounts, Lexicon, LexiconCounts, NearestMention};
pub use mix::{Codemix, DonorChoice};
pub use vectors::MentionVectors;

use serde::{Deserialize, Serialize};

use crate::rate::Rate;

/// How sentences are code-mixed.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CodemixSettings {
    /// The probability that a mention is replaced; at least one of a sentence is.
    pub rate: Rate,
    /// What mentions are compared by: `"words"`, from files, or `"pieces"`, the rows of the masked language model.
    pub vectors: VectorKind,
}

/// Where the vectors of words come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum VectorKind {
    /// Files of aligned word vectors, one a language (the paper: MUSE).
    Words,
    /// The mean over the rows of the word's pieces in the table of the pretrained masked language model.
    Pieces,
}
