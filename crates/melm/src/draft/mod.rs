//! A draft: a generated sentence, how it was made, and the decision of the filter.
//!
//! [`Draft`] is the only representation of a draft. [`to_lines`] writes drafts as the lines of `drafts.jsonl`;
//! [`read_lines`] reads them back and checks them against the gold corpus.

mod line;
mod novelty;

pub(crate) use line::is_zero;
pub use line::{read_lines, to_lines};
pub use novelty::Novelty;

use std::ops::Range;

use melm_text::{Corpus, EntityType, Mention, Sentence, Token};
use serde::{Deserialize, Serialize};

/// A generated sentence with its provenance and its verdict.
///
/// A draft with a source has the tokens of its source outside mentions, except where [`Self::swaps`] says otherwise. It
/// has the tags of its source too, unless a mention was taken from another sentence and has another length.
#[derive(Debug, Clone, PartialEq)]
pub struct Draft {
    /// The sentence. Comments and other columns are those of its source.
    pub sentence: Sentence,
    /// The index of its source in the gold corpus; `None` if a model wrote the whole sentence.
    pub source: Option<usize>,
    /// The round it was generated in, from 1.
    pub round: u32,
    /// The seed of the run.
    pub seed: u64,
    /// The mentions that were guessed or taken from another sentence, in order.
    pub replacements: Vec<Replacement>,
    /// The mentions that code-mixing replaced before; `replacements` apply to the sentence it made.
    pub mixed: Vec<Replacement>,
    /// Tokens, inside and outside mentions, that were replaced by others with the same tag, in order.
    pub swaps: Vec<Swap>,
    /// The number of tokens that kept their old form because the guessed pieces spelled no valid token.
    pub n_restored: usize,
    /// The decision of the filter.
    pub verdict: Verdict,
    /// The judge's probability of the tags, all together; `None` if no judge has read the draft.
    pub probability: Option<f64>,
    /// The tokens where the judge predicts another tag.
    pub disagreements: Vec<Disagreement>,
}

/// The decision about a draft.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// It is in the augmented set.
    Kept,
    /// It repeats the sentence it was made from.
    RepeatsSource,
    /// It repeats another gold sentence.
    RepeatsGold,
    /// It repeats an earlier draft.
    RepeatsDraft,
    /// The judge predicts other tags.
    Disagrees,
    /// The judge finds its tags too unlikely.
    Unlikely,
    /// It is a copy of a sentence without a mention. It is in the augmented set because the plan asks for copies.
    Copied,
    /// It is new and has not been judged yet.
    New,
}

impl Verdict {
    /// Returns true if the draft is in the augmented set.
    pub fn is_kept(self) -> bool {
        matches!(self, Self::Kept | Self::Copied)
    }
}

/// A token where the judge predicts another tag than the draft has.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Disagreement {
    /// The index of the token.
    pub token: usize,
    /// The tag of the draft.
    pub wanted: String,
    /// The tag that the judge predicts.
    pub found: String,
    /// The judge's probability of the draft's tag.
    pub probability: f32,
}

/// A token replaced by another token with the same tag.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Swap {
    /// Its index in source and draft.
    pub token: usize,
    /// The index of the sentence that the new token comes from.
    pub sentence: usize,
    /// The index of the new token in that sentence.
    pub from: usize,
}

/// A replaced mention.
#[derive(Debug, Clone, PartialEq)]
pub struct Replacement {
    /// Its index among the mentions of the source.
    pub mention: usize,
    /// Its tokens in the draft.
    pub tokens: Range<usize>,
    /// Its entity type.
    pub entity_type: EntityType,
    /// Its tokens in the source.
    pub old: Vec<Token>,
    /// Its tokens in the draft. There are as many as in the source unless the mention was taken from another sentence.
    pub new: Vec<Token>,
    /// The guessed pieces, in order.
    pub pieces: Vec<GuessedPiece>,
    /// The mention it was taken from, if it was not guessed.
    pub donor: Option<Donor>,
    /// The cosine similarity of old and new mention, if the new one was chosen by it.
    pub similarity: Option<f32>,
}

/// A mention of the gold corpus that replaces another.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Donor {
    /// The index of its sentence.
    pub sentence: usize,
    /// Its tokens in that sentence.
    pub tokens: Range<usize>,
}

/// A piece that was masked and guessed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct GuessedPiece {
    /// The index of its token in the sentence.
    pub token: usize,
    /// Its index among the pieces of the token.
    pub position: usize,
    /// The masked piece, as the vocabulary writes it.
    pub old: String,
    /// The guessed piece.
    pub new: String,
    /// Its rank among the pieces allowed there, from 1.
    pub rank: usize,
    /// Its log-probability among all pieces.
    pub log_probability: f32,
}

impl Draft {
    /// A new draft of the gold sentence at index `source`.
    pub(crate) fn new(
        sentence: Sentence,
        source: usize,
        round: u32,
        replacements: Vec<Replacement>,
    ) -> Self {
        Self { source: Some(source), replacements, ..Self::without_source(sentence, round) }
    }

    /// A new draft that a model wrote as a whole.
    pub(crate) fn without_source(sentence: Sentence, round: u32) -> Self {
        Self {
            sentence,
            source: None,
            round,
            seed: 0,
            replacements: Vec::new(),
            mixed: Vec::new(),
            swaps: Vec::new(),
            n_restored: 0,
            verdict: Verdict::New,
            probability: None,
            disagreements: Vec::new(),
        }
    }

    /// The mentions that its source does not have: the replaced ones, or all mentions of a draft without a source.
    pub(crate) fn new_mentions(&self) -> Vec<(EntityType, Vec<Token>)> {
        if self.source.is_some() {
            let replaced = self.replacements.iter();
            return replaced.map(|one| (one.entity_type, one.new.clone())).collect();
        }
        let tokens = self.sentence.tokens();
        let mention = |one: Mention| (one.entity_type, tokens[one.tokens].to_vec());
        self.sentence.mentions().map(mention).collect()
    }

    /// The language code of its source, or its own if it has no source; `None` in a corpus without languages.
    pub fn language<'c>(&self, gold: &'c Corpus) -> Option<&'c str> {
        match self.source {
            Some(source) => gold.locate(source).0,
            None => self.sentence.language().map(|own| &*gold.languages()[own.index()].code),
        }
    }
}
