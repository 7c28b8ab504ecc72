//! A draft: a generated sentence, how it was made, and the decision of the filter.
//!
//! [`Draft`] is the only representation of a draft. [`to_lines`] writes drafts as the lines of `drafts.jsonl`, and
//! [`text_to_lines`] writes labelled sentences of unlabelled text. [`read_lines`] reads both kinds back and checks them
//! against the gold corpus. [`CandidateIds`] gives every line an id, and [`Decisions`] are a person's verdicts by id.

mod decisions;
mod id;
mod line;
mod mention_checks;
mod novelty;
mod origin;
mod text_line;

pub use decisions::{AppliedDecisions, Decision, Decisions};
pub use id::{CandidateId, CandidateIds};
pub use line::{CandidateLines, read_lines, to_lines};
pub(crate) use line::{is_zero, spell_tags, texts};
pub(crate) use mention_checks::{is_repeat, reject_repeats, reject_unlikely};
pub use novelty::Novelty;
pub(crate) use text_line::ProposedLine;
pub use text_line::{TextLine, text_to_lines};

use std::ops::Range;

use melm_text::{Corpus, EntityType, Mention, Sentence, Token};
use serde::{Deserialize, Serialize};

use crate::names::NameOrigin;

/// A generated sentence with its provenance and its verdict.
///
/// Outside mentions, a draft has the same tokens as its source, except for those in [`Self::swaps`]. It also has the
/// same tags, unless a mention was replaced by a mention of another sentence that has a different length.
#[derive(Debug, Clone, PartialEq)]
pub struct Draft {
    /// The sentence, with the comments of its source. A guessed token has the other columns of the token it replaces.
    pub sentence: Sentence,
    /// The index of the source sentence in the gold corpus; `None` if a model wrote the whole sentence.
    pub source: Option<usize>,
    /// The round in which the draft was generated, from 1.
    pub round: u32,
    /// The seed of the run.
    pub seed: u64,
    /// The mentions that were guessed or taken from another sentence, in order.
    pub replacements: Vec<Replacement>,
    /// The mentions replaced by code-mixing, before `replacements` were applied.
    pub mixed: Vec<Replacement>,
    /// Tokens, inside and outside mentions, that were replaced by others with the same tag, in order.
    pub swaps: Vec<Swap>,
    /// The number of tokens that kept their old text because the guessed pieces did not spell a valid token.
    pub n_restored: usize,
    /// The decision of the filter.
    pub verdict: Verdict,
    /// The joint probability of all tags according to the judge; `None` if the draft was not judged.
    pub probability: Option<f64>,
    /// The tokens for which the judge predicts another tag.
    pub disagreements: Vec<Disagreement>,
    /// The number of judges that wanted to keep the draft; `None` if there is only one.
    pub votes: Option<usize>,
}

/// The decision about a draft, or about a sentence of unlabelled text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// The draft is in the augmented set.
    Kept,
    /// The draft repeats its source.
    RepeatsSource,
    /// The draft repeats another gold sentence.
    RepeatsGold,
    /// The draft repeats an earlier draft.
    RepeatsDraft,
    /// A replaced mention repeats the token beside it.
    RepeatsToken,
    /// The masked language model finds a rewritten mention much less likely than the old one.
    UnlikelyMention,
    /// The judge predicts other tags.
    Disagrees,
    /// According to the judge, the probability of the tags is too low.
    Unlikely,
    /// The draft is a copy of a sentence without a mention. It is in the augmented set because the plan asks for
    /// copies.
    Copied,
    /// The sentence of a text is longer than the model.
    TooLong,
    /// The panel finds no mention in the sentence of a text.
    NoMention,
    /// The panel agrees on the sentence of a text, but enough other sentences were kept.
    OverCap,
    /// The draft is new and has not been judged yet.
    New,
    /// A person accepted the draft or the sentence: see [`Decisions`]. It is in the augmented set.
    Accepted,
    /// A person rejected the draft or the sentence.
    Rejected,
}

impl Verdict {
    /// Returns true if a person decided.
    pub fn is_decided(self) -> bool {
        matches!(self, Self::Accepted | Self::Rejected)
    }

    /// Returns true if the draft is in the augmented set.
    pub fn is_kept(self) -> bool {
        matches!(self, Self::Kept | Self::Copied | Self::Accepted)
    }
}

/// A token for which the judge predicts a tag other than that of the draft.
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
    /// The index of the token, which is the same in the source and in the draft.
    pub token: usize,
    /// The index of the sentence that the new token comes from.
    pub sentence: usize,
    /// The index of the new token in that sentence.
    pub from: usize,
}

/// A replaced mention.
#[derive(Debug, Clone, PartialEq)]
pub struct Replacement {
    /// The index of the mention among the mentions of the source.
    pub mention: usize,
    /// The range of the mention's tokens in the draft.
    pub tokens: Range<usize>,
    /// The entity type of the mention.
    pub entity_type: EntityType,
    /// The old tokens, from the source.
    pub old: Vec<Token>,
    /// The new tokens. There are as many as old tokens, unless the mention was taken from another sentence.
    pub new: Vec<Token>,
    /// The guessed pieces, in order.
    pub pieces: Vec<GuessedPiece>,
    /// The gold mention that the new tokens were taken from; `None` if they were guessed or are a name.
    pub donor: Option<Donor>,
    /// Where the new tokens come from, if they are a name that was not taken from gold.
    pub name: Option<NameOrigin>,
    /// The cosine similarity of the old and the new mention, if the new mention was chosen by similarity.
    pub similarity: Option<f32>,
    /// The mean log-probability of the new pieces minus that of the old ones, if the plan asks for scores
    /// (`generate.score_margin`).
    pub score: Option<f64>,
}

/// A mention of the gold corpus that replaces another.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Donor {
    /// The index of the sentence that contains the mention.
    pub sentence: usize,
    /// The range of the mention's tokens in that sentence.
    pub tokens: Range<usize>,
}

/// A piece that was masked and guessed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct GuessedPiece {
    /// The index of the token in the sentence.
    pub token: usize,
    /// The index of the piece among the pieces of the token.
    pub position: usize,
    /// The masked piece, as the vocabulary writes it. With `generate.whole_words`, all pieces of the token.
    pub old: String,
    /// The guessed piece.
    pub new: String,
    /// The rank of the guessed piece among the allowed pieces, from 1.
    pub rank: usize,
    /// The log-probability of the guessed piece, from the softmax over all pieces.
    pub log_probability: f32,
}

impl Draft {
    /// Creates a draft of the gold sentence at index `source`.
    pub(crate) fn new(
        sentence: Sentence,
        source: usize,
        round: u32,
        replacements: Vec<Replacement>,
    ) -> Self {
        Self { source: Some(source), replacements, ..Self::without_source(sentence, round) }
    }

    /// Creates a draft that a model wrote as a whole.
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
            votes: None,
        }
    }

    /// Returns the mentions that the source does not have: the replaced ones, or all mentions of a draft without a
    /// source.
    pub(crate) fn new_mentions(&self) -> Vec<(EntityType, Vec<Token>)> {
        if self.source.is_some() {
            let replaced = self.replacements.iter();
            return replaced.map(|one| (one.entity_type, one.new.clone())).collect();
        }
        let tokens = self.sentence.tokens();
        let mention = |one: Mention| (one.entity_type, tokens[one.tokens].to_vec());
        self.sentence.mentions().map(mention).collect()
    }

    /// Returns the language code of the draft's source, or of the draft if it has no source. `None` if the corpus has
    /// no languages.
    pub fn language<'c>(&self, gold: &'c Corpus) -> Option<&'c str> {
        match self.source {
            Some(source) => gold.locate(source).0,
            None => self.sentence.language().map(|own| &*gold.languages()[own.index()].code),
        }
    }
}
