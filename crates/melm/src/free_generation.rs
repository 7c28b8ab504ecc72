//! Sentences that a model writes from nothing, as the baselines DAGA and `MulDA` do: which of them are drafts, and why the
//! others are none.

use std::collections::{BTreeMap, HashSet};
use std::ops::Range;

use melm_text::{Corpus, Scheme, Sentence, Tag, Token};
use serde::{Deserialize, Serialize};

use crate::Error;
use crate::draft::Draft;
use crate::random::StreamKey;
use crate::stage::Stage;

/// Why something written is no draft.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RejectReason {
    /// It did not end within the longest length.
    Unfinished,
    /// It does not begin with a language, of which the corpus has several.
    NoLanguage,
    /// It has no token.
    Empty,
    /// A tag is followed by no token.
    TagWithoutToken,
    /// Its tags break the scheme of the corpus: an `I-` without its `B-`.
    BrokenTags,
    /// It has no mention.
    NoMention,
    /// It has a token, or only tokens, that nobody knows.
    UnknownToken,
    /// Its pieces spell no token.
    NotAToken,
    /// It repeats a gold sentence.
    RepeatsGold,
    /// It repeats a sentence written before it in the same round.
    RepeatsDraft,
}

impl RejectReason {
    /// What a report says of it.
    pub fn described(self) -> &'static str {
        match self {
            Self::Unfinished => "never ended",
            Self::NoLanguage => "no language",
            Self::Empty => "no token",
            Self::TagWithoutToken => "a tag without a token",
            Self::BrokenTags => "tags out of order",
            Self::NoMention => "no mention",
            Self::UnknownToken => "unknown tokens",
            Self::NotAToken => "a token that is none",
            Self::RepeatsGold => "repeat a gold sentence",
            Self::RepeatsDraft => "repeat each other",
        }
    }
}

/// How many sentences were written that are no drafts, by reason.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct RejectedCounts(BTreeMap<RejectReason, usize>);

impl RejectedCounts {
    /// One more.
    pub fn count(&mut self, reason: RejectReason) {
        *self.0.entry(reason).or_default() += 1;
    }

    /// Adds the counts of another round.
    pub fn add(&mut self, other: &Self) {
        for (reason, n) in other.iter() {
            *self.0.entry(reason).or_default() += n;
        }
    }

    /// Whether nothing was rejected.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Every reason with its count.
    pub fn iter(&self) -> impl Iterator<Item = (RejectReason, usize)> {
        self.0.iter().map(|(reason, n)| (*reason, *n))
    }

    /// All of them together.
    pub fn total(&self) -> usize {
        self.0.values().sum()
    }
}

/// The sentence of tokens and tags, unless it is not worth being a draft.
pub(crate) fn checked_sentence(
    tokens: Vec<Token>,
    tags: Vec<Tag>,
    scheme: Scheme,
) -> Result<Sentence, RejectReason> {
    if scheme.breaks(&tags).next().is_some() {
        return Err(RejectReason::BrokenTags);
    }
    if !tokens.is_empty() && tags.iter().all(|tag| *tag == Tag::Outside) {
        return Err(RejectReason::NoMention);
    }
    Sentence::new(tokens, tags).map_err(|_| RejectReason::Empty)
}

/// A round of a method that writes.
#[derive(Clone, Copy)]
pub(crate) struct WritingRound {
    /// Its number, from 1.
    pub(crate) number: u32,
    /// All rounds.
    pub(crate) of: u64,
    /// How many sentences are written at most for each that is wanted.
    pub(crate) tries: usize,
    /// How many are written side by side.
    pub(crate) side_by_side: usize,
}

/// What some tries wrote, each by its own stream below the key.
type Written = Result<Vec<Result<Sentence, RejectReason>>, Error>;

impl WritingRound {
    /// Lets `write` write until there are as many drafts as a method that fills masks would make of gold, or until it has
    /// tried often enough.
    pub(crate) fn collect(
        self,
        gold: &Corpus,
        stage: &mut Stage<'_>,
        mut write: impl FnMut(StreamKey, Range<usize>) -> Written,
    ) -> Result<(Vec<Draft>, RejectedCounts), Error> {
        let key = stage.key().at(self.number.into());
        let mut collector = Collector::new(gold, self.number);
        let most = collector.wanted.saturating_mul(self.tries);
        let mut n_tried = 0;
        while !collector.is_full() && n_tried < most {
            let tries = n_tried..most.min(n_tried + self.side_by_side);
            n_tried = tries.end;
            for written in write(key, tries)? {
                collector.take(written);
            }
            let wanted = collector.wanted as u64;
            let done = u64::from(self.number - 1) * wanted + collector.drafts.len() as u64;
            stage.progress(done, wanted * self.of)?;
        }
        Ok((collector.drafts, collector.rejected))
    }
}

/// The drafts of a round among all that is written, until there are as many as wanted.
struct Collector {
    round: u32,
    wanted: usize,
    gold: HashSet<(Vec<Token>, Vec<Tag>)>,
    written: HashSet<(Vec<Token>, Vec<Tag>)>,
    drafts: Vec<Draft>,
    rejected: RejectedCounts,
}

impl Collector {
    /// For a round that is to have as many drafts as a method that fills masks: one for each sentence with a mention.
    fn new(gold: &Corpus, round: u32) -> Self {
        let sentences = gold.sentences().iter();
        let wanted = sentences.clone().filter(|s| s.mentions().next().is_some()).count();
        let gold = sentences.map(|s| (s.tokens().to_vec(), s.tags().to_vec())).collect();
        let (written, drafts, rejected) = (HashSet::new(), Vec::new(), RejectedCounts::default());
        Self { round, wanted, gold, written, drafts, rejected }
    }

    fn is_full(&self) -> bool {
        self.drafts.len() == self.wanted
    }

    /// Takes what was written next; nothing once there are enough drafts.
    fn take(&mut self, written: Result<Sentence, RejectReason>) {
        if self.is_full() {
            return;
        }
        let checked = written.and_then(|sentence| {
            let content = (sentence.tokens().to_vec(), sentence.tags().to_vec());
            if self.gold.contains(&content) {
                Err(RejectReason::RepeatsGold)
            } else if !self.written.insert(content) {
                Err(RejectReason::RepeatsDraft)
            } else {
                Ok(sentence)
            }
        });
        match checked {
            Ok(sentence) => self.drafts.push(Draft::written(sentence, self.round)),
            Err(reason) => self.rejected.count(reason),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use melm_text::{ReadOptions, Source};

    #[test]
    fn what_is_no_draft_is_counted_by_its_reason_and_enough_is_enough() {
        let source = Source::from_text("a", "in O\nBonn B-LOC\n\nin O\nGhent B-LOC\n\nso O\n");
        let gold = Corpus::read(&source, &ReadOptions::default()).unwrap();
        let outside = Tag::Outside;
        let [begin, inside] = ["B-LOC", "I-LOC"].map(|t| gold.types().clone().parse(t).unwrap());
        let mut collector = Collector::new(&gold, 3);
        assert_eq!(collector.wanted, 2);
        for (tokens, tags) in [
            (vec!["in", "Bonn"], vec![outside, begin]),
            (vec!["in", "Rome"], vec![outside, begin]),
            (vec!["in", "Rome"], vec![outside, begin]),
            (vec!["in", "Rome"], vec![outside, inside]),
            (vec!["in", "Rome"], vec![outside, outside]),
            (vec![], vec![]),
            (vec!["in", "Bath"], vec![outside, begin]),
            (vec!["in", "Oslo"], vec![outside, begin]),
        ] {
            let tokens = tokens.into_iter().map(|t| Token::new(t).unwrap()).collect();
            collector.take(checked_sentence(tokens, tags, gold.scheme()));
        }
        let Collector { drafts, rejected, .. } = collector;
        let places: Vec<_> = drafts.iter().map(|d| d.sentence.tokens()[1].as_str()).collect();
        assert_eq!((places, drafts[0].round, drafts[0].source), (vec!["Rome", "Bath"], 3, None));
        let reasons = [
            RejectReason::Empty,
            RejectReason::BrokenTags,
            RejectReason::NoMention,
            RejectReason::RepeatsGold,
            RejectReason::RepeatsDraft,
        ];
        assert_eq!(rejected.iter().collect::<Vec<_>>(), reasons.map(|reason| (reason, 1)));
    }
}
