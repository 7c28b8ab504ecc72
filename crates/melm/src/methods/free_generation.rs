//! Free generation: the baselines DAGA and `MulDA` write whole sentences instead of filling masks.
//!
//! Each written sentence becomes a draft or is rejected. Rejected sentences are counted by reason.

use std::collections::{BTreeMap, HashSet};
use std::ops::Range;

use melm_text::{Corpus, Scheme, Sentence, Tag, Token};
use serde::{Deserialize, Serialize};

use super::Augmenter;
use crate::Error;
use crate::draft::Draft;
use crate::random::StreamKey;
use crate::stage::Stage;

/// The reason why a written sentence is not a draft.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RejectReason {
    /// The sentence did not end within the maximum length.
    Unfinished,
    /// The sentence does not begin with a language, although the corpus has several.
    NoLanguage,
    /// The sentence has no token.
    Empty,
    /// A tag is not followed by a token.
    TagWithoutToken,
    /// The tags are not valid in the scheme of the corpus, such as an `I-` without its `B-`.
    BrokenTags,
    /// The sentence has no mention.
    NoMention,
    /// The sentence has an unknown token. If the settings keep unknown tokens, the sentence has no other token.
    UnknownToken,
    /// The pieces do not spell a valid token.
    NotAToken,
    /// The sentence repeats a gold sentence.
    RepeatsGold,
    /// The sentence repeats an earlier one of the same round.
    RepeatsDraft,
}

impl RejectReason {
    /// A short description for reports.
    pub fn description(self) -> &'static str {
        match self {
            Self::Unfinished => "never ended",
            Self::NoLanguage => "no language",
            Self::Empty => "no token",
            Self::TagWithoutToken => "a tag without a token",
            Self::BrokenTags => "tags out of order",
            Self::NoMention => "no mention",
            Self::UnknownToken => "unknown tokens",
            Self::NotAToken => "an invalid token",
            Self::RepeatsGold => "repeats of gold",
            Self::RepeatsDraft => "repeats of a draft",
        }
    }
}

/// The number of rejected sentences by reason.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct RejectedCounts(BTreeMap<RejectReason, usize>);

impl RejectedCounts {
    /// Counts one rejected sentence.
    pub(crate) fn count(&mut self, reason: RejectReason) {
        *self.0.entry(reason).or_default() += 1;
    }

    /// Adds the counts of another round. A sum that exceeds `usize`, as the counts of a changed file can have, is the
    /// largest number.
    pub(crate) fn add(&mut self, other: &Self) {
        for (reason, n) in other.iter() {
            let sum = self.0.entry(reason).or_default();
            *sum = sum.saturating_add(n);
        }
    }

    /// Returns true if no sentence was rejected.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Iterates over the reasons and their counts.
    pub fn iter(&self) -> impl Iterator<Item = (RejectReason, usize)> {
        self.0.iter().map(|(reason, n)| (*reason, *n))
    }

    /// The number of all rejected sentences.
    pub fn total(&self) -> usize {
        self.0.values().fold(0, |sum, n| sum.saturating_add(*n))
    }
}

/// Builds a sentence from tokens and tags. Fails if its tags are invalid, or if it has no token or no mention.
pub(crate) fn checked_sentence(
    tokens: Vec<Token>,
    tags: Vec<Tag>,
    scheme: Scheme,
) -> Result<Sentence, RejectReason> {
    if scheme.violations(&tags).next().is_some() {
        return Err(RejectReason::BrokenTags);
    }
    if !tokens.is_empty() && tags.iter().all(|tag| *tag == Tag::Outside) {
        return Err(RejectReason::NoMention);
    }
    Sentence::new(tokens, tags).map_err(|_| RejectReason::Empty)
}

/// A model that writes sentences.
pub(crate) trait SentenceWriter {
    /// The number of sentences written in one batch.
    const BATCH_SIZE: usize;

    /// The maximum number of sentences to write for each draft that is wanted.
    fn max_tries(&self) -> usize;

    /// Writes one sentence for each of some tries, in one batch. Each sentence depends only on its own random stream:
    /// the stream with the number of the try, below `key`.
    fn write(
        &self,
        key: StreamKey,
        tries: Range<usize>,
    ) -> Result<Vec<Result<Sentence, RejectReason>>, Error>;
}

/// Makes drafts from the sentences that a model writes.
pub(crate) struct FreeGeneration<'a, W> {
    writer: W,
    gold: &'a Corpus,
    /// The total number of rounds, for progress reports.
    n_rounds: u32,
    /// The sentences rejected in the last round.
    rejected: RejectedCounts,
}

impl<'a, W: SentenceWriter> FreeGeneration<'a, W> {
    pub(crate) fn new(writer: W, gold: &'a Corpus, n_rounds: u32) -> Self {
        Self { writer, gold, n_rounds, rejected: RejectedCounts::default() }
    }
}

impl<W: SentenceWriter> Augmenter for FreeGeneration<'_, W> {
    /// Writes sentences until there is one draft for each gold sentence with a mention, or until the maximum number
    /// of tries is reached. Methods that fill masks make the same number of drafts.
    fn round(&mut self, round: u32, stage: &mut Stage<'_>) -> Result<Vec<Draft>, Error> {
        let key = stage.key().at(round.into());
        let mut collector = Collector::new(self.gold, round);
        let wanted = collector.wanted as u64;
        let most = collector.wanted.saturating_mul(self.writer.max_tries());
        let mut n_tried = 0;
        while !collector.is_full() && n_tried < most {
            let tries = n_tried..most.min(n_tried + W::BATCH_SIZE);
            n_tried = tries.end;
            for written in self.writer.write(key, tries)? {
                collector.add(written);
            }
            let done = u64::from(round - 1) * wanted + collector.drafts.len() as u64;
            stage.progress(done, wanted * u64::from(self.n_rounds))?;
        }
        self.rejected = collector.rejected;
        Ok(collector.drafts)
    }

    fn dropped(&self) -> RejectedCounts {
        self.rejected.clone()
    }
}

/// Collects the drafts of a round until there are enough.
struct Collector {
    round: u32,
    wanted: usize,
    gold: HashSet<(Vec<Token>, Vec<Tag>)>,
    written: HashSet<(Vec<Token>, Vec<Tag>)>,
    drafts: Vec<Draft>,
    rejected: RejectedCounts,
}

impl Collector {
    /// Creates a collector that accepts one draft for each gold sentence with a mention.
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

    /// Adds a written sentence or counts it as rejected. Does nothing once there are enough drafts.
    fn add(&mut self, written: Result<Sentence, RejectReason>) {
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
            Ok(sentence) => self.drafts.push(Draft::without_source(sentence, self.round)),
            Err(reason) => self.rejected.count(reason),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use melm_text::{ReadOptions, Source};

    #[test]
    fn counts_of_a_changed_file_do_not_overflow() {
        let largest = [RejectReason::Empty, RejectReason::NoMention].map(|why| (why, usize::MAX));
        let mut counts = RejectedCounts(largest.into());
        let other = counts.clone();
        counts.add(&other);
        assert_eq!((counts.total(), counts.iter().count()), (usize::MAX, 2));
    }

    #[test]
    fn rejected_sentences_are_counted_by_reason_and_collecting_stops_when_full() {
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
            collector.add(checked_sentence(tokens, tags, gold.scheme()));
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
