//! Drafts: generated sentences, each with what was replaced in its source.

use std::collections::HashSet;
use std::ops::Range;

use melm_text::{Corpus, EntityType, Sentence, Tag, Token};
use serde::{Deserialize, Serialize};

/// A generated sentence. If it has a source, its tokens outside mentions are those of its source, but for swaps; its tags
/// too, unless a mention was taken from elsewhere and has another length.
#[derive(Debug, Clone, PartialEq)]
pub struct Draft {
    /// The sentence; comments and other columns are those of its source.
    pub sentence: Sentence,
    /// The position of its source in the gold corpus; none if it was written from nothing.
    pub source: Option<usize>,
    /// The round it was generated in, from 1.
    pub round: u32,
    /// What was masked and guessed, or taken from elsewhere, one entry a mention, in order.
    pub replacements: Vec<Replacement>,
    /// How the source was code-mixed before; the replacements are in what that made of it.
    pub mixed: Vec<Replacement>,
    /// Tokens, inside mentions and outside, that gave way to others of their tag, in order.
    pub swaps: Vec<Swap>,
    /// Tokens whose guessed pieces spelled nothing sound, and that stayed as they were.
    pub n_restored: usize,
}

impl Draft {
    /// A draft of a sentence of the gold corpus, with what was replaced in it.
    pub fn new(
        sentence: Sentence,
        (source, round): (usize, u32),
        replacements: Vec<Replacement>,
    ) -> Self {
        let (source, mixed, swaps) = (Some(source), Vec::new(), Vec::new());
        Self { sentence, source, round, replacements, mixed, swaps, n_restored: 0 }
    }

    /// A sentence that was written from nothing.
    pub fn written(sentence: Sentence, round: u32) -> Self {
        Self { source: None, ..Self::new(sentence, (0, round), Vec::new()) }
    }
}

/// A token that gave way to another of its tag.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Swap {
    /// Its place in source and draft, from 0.
    pub token: usize,
    /// The sentence that the other was taken from, from 0.
    pub sentence: usize,
    /// The other's place there.
    pub from: usize,
}

/// What became of one mention.
#[derive(Debug, Clone, PartialEq)]
pub struct Replacement {
    /// Which of the source's mentions it is, from 0.
    pub mention: usize,
    /// The mention's tokens in the draft.
    pub tokens: Range<usize>,
    /// Its entity type.
    pub entity_type: EntityType,
    /// Its tokens in the source.
    pub old: Vec<Token>,
    /// Its tokens in the draft, perhaps the same; as many, unless it was taken from elsewhere.
    pub new: Vec<Token>,
    /// The guessed pieces, in order.
    pub pieces: Vec<GuessedPiece>,
    /// Where it was taken from, if nothing was guessed.
    pub donor: Option<Donor>,
    /// The cosine of both, if that is why it was taken.
    pub similarity: Option<f32>,
}

/// A mention of the gold corpus that took the place of another.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Donor {
    /// The sentence it is in, from 0.
    pub sentence: usize,
    /// Its tokens there.
    pub tokens: Range<usize>,
}

/// A piece that was masked and guessed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct GuessedPiece {
    /// The sentence's token it is in.
    pub token: usize,
    /// Its place among the token's pieces, from 0.
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

/// What a draft repeats.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Repeats {
    /// The sentence it was made from.
    Source,
    /// Another sentence of the gold corpus.
    Gold,
    /// A draft that came before it.
    Draft,
}

/// How many drafts were not kept since they repeat a sentence.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RepeatCounts {
    /// Drafts that repeat their source.
    pub source: usize,
    /// Drafts that repeat another gold sentence.
    pub gold: usize,
    /// Drafts that repeat an earlier draft.
    pub draft: usize,
}

/// Tells new drafts from those that repeat tokens and tags of a sentence seen before.
///
/// Drafts are to be shown in the order of rounds and, in a round, of sources: then adding rounds changes nothing in
/// earlier ones.
#[derive(Debug)]
pub struct Novelty<'a> {
    gold: &'a Corpus,
    gold_contents: HashSet<(&'a [Token], &'a [Tag])>,
    drafts: HashSet<(Vec<Token>, Vec<Tag>)>,
    counts: RepeatCounts,
}

impl<'a> Novelty<'a> {
    /// For drafts made from this corpus.
    pub fn of(gold: &'a Corpus) -> Self {
        let gold_contents = gold.sentences().iter().map(|s| (s.tokens(), s.tags())).collect();
        Self { gold, gold_contents, drafts: HashSet::new(), counts: RepeatCounts::default() }
    }

    /// Looks at the next draft: what it repeats, if anything.
    pub fn look(&mut self, draft: &Draft) -> Option<Repeats> {
        let content = (draft.sentence.tokens(), draft.sentence.tags());
        let source = draft.source.map(|source| &self.gold.sentences()[source]);
        if source.is_some_and(|source| content == (source.tokens(), source.tags())) {
            self.counts.source += 1;
            Some(Repeats::Source)
        } else if self.gold_contents.contains(&content) {
            self.counts.gold += 1;
            Some(Repeats::Gold)
        } else if !self.drafts.insert((content.0.to_vec(), content.1.to_vec())) {
            self.counts.draft += 1;
            Some(Repeats::Draft)
        } else {
            None
        }
    }

    /// Keeps the drafts that repeat nothing.
    pub fn keep(&mut self, mut drafts: Vec<Draft>) -> Vec<Draft> {
        drafts.retain(|draft| self.look(draft).is_none());
        drafts
    }

    /// How many were not kept so far, and why.
    pub fn counts(&self) -> RepeatCounts {
        self.counts
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use melm_text::{ReadOptions, Source};

    #[test]
    fn a_draft_that_repeats_anything_is_not_kept_and_counted() {
        let text = "in O\nBonn B-LOC\n\nin O\nGhent B-LOC\n\nin O\nBath O\n";
        let source = Source::from_text("a.conll", text);
        let gold = Corpus::read(&source, &ReadOptions::default()).unwrap();
        let draft = |place: &str, round| {
            let sentence = gold.sentences()[0].with_tokens([(1, Token::new(place).unwrap())]);
            Draft::new(sentence, (0, round), Vec::new())
        };
        let mut novelty = Novelty::of(&gold);
        let places = ["Bonn", "Ghent", "Bath", "Rome", "Bath", "Oslo"];
        let kept = novelty.keep(places.map(|place| draft(place, 1)).to_vec());
        // The gold sentence with Bath has other tags.
        let texts: Vec<_> = kept.iter().map(|d| d.sentence.tokens()[1].as_str()).collect();
        assert_eq!(texts, ["Bath", "Rome", "Oslo"]);
        assert_eq!(novelty.look(&draft("Rome", 2)), Some(Repeats::Draft));
        assert_eq!(novelty.counts(), RepeatCounts { source: 1, gold: 1, draft: 2 });
    }
}
