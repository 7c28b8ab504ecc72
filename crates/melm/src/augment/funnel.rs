//! What became of the drafts, counted.

use std::collections::{BTreeMap, BTreeSet};

use melm_text::Corpus;
use serde::{Deserialize, Serialize};

use super::record::is_none;
use super::{DraftRecord, Verdict};
use crate::free_generation::RejectedCounts;

/// How many drafts there were, and how many were kept or why not.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Funnel {
    /// Sentences that were written and are no drafts, by reason; methods that fill masks write none.
    #[serde(default, skip_serializing_if = "RejectedCounts::is_empty")]
    pub dropped: RejectedCounts,
    /// All drafts.
    pub drafts: usize,
    /// Those that repeat their source.
    pub repeat_source: usize,
    /// Those that repeat another gold sentence.
    pub repeat_gold: usize,
    /// Those that repeat an earlier draft.
    pub repeat_draft: usize,
    /// Those whose tags the judge does not agree with.
    pub disagrees: usize,
    /// Those whose tags the judge finds too unlikely.
    pub unlikely: usize,
    /// Those in the augmented set.
    pub kept: usize,
    /// Copies of sentences without a mention, which are in the augmented set too.
    #[serde(default, skip_serializing_if = "is_none")]
    pub copied: usize,
    /// Those that nobody has judged yet.
    #[serde(default, skip_serializing_if = "is_none")]
    pub new: usize,
    /// Tokens of all drafts that stayed as they were, since the guessed pieces spelled nothing sound.
    #[serde(default, skip_serializing_if = "is_none")]
    pub restored_tokens: usize,
    /// Mentions of all drafts that were taken at random, since they or all others of the language have no vector.
    #[serde(default, skip_serializing_if = "is_none")]
    pub without_vector: usize,
    /// Different mentions of the kept drafts that gold does not have, by entity type.
    pub new_mentions: BTreeMap<String, usize>,
}

impl Funnel {
    /// Whether there were new drafts, and the judge let none of them pass.
    pub fn judge_took_all(&self) -> bool {
        self.kept + self.copied == 0 && self.disagrees + self.unlikely > 0
    }

    /// Counts the drafts of a corpus.
    pub fn of(records: &[DraftRecord], corpus: &Corpus) -> Self {
        let count = |verdict| records.iter().filter(|record| record.verdict == verdict).count();
        Self {
            dropped: RejectedCounts::default(),
            drafts: records.len(),
            repeat_source: count(Verdict::RepeatsSource),
            repeat_gold: count(Verdict::RepeatsGold),
            repeat_draft: count(Verdict::RepeatsDraft),
            disagrees: count(Verdict::Disagrees),
            unlikely: count(Verdict::Unlikely),
            kept: count(Verdict::Kept),
            copied: count(Verdict::Copied),
            new: count(Verdict::New),
            restored_tokens: records.iter().map(|record| record.restored).sum(),
            without_vector: without_vector(records),
            new_mentions: new_mentions(records, corpus),
        }
    }

    /// With what was written and is no draft.
    #[must_use]
    pub fn with_dropped(self, dropped: &RejectedCounts) -> Self {
        Self { dropped: dropped.clone(), ..self }
    }
}

/// Counted only where others were taken by similarity: elsewhere all are taken at random.
fn without_vector(records: &[DraftRecord]) -> usize {
    // What was guessed in a code-mixed sentence tells again how that was mixed.
    let donors =
        records.iter().flat_map(|record| &record.replaced).filter(|one| one.donor.is_some());
    let (similar, random): (Vec<_>, Vec<_>) = donors.partition(|one| one.similarity.is_some());
    if similar.is_empty() { 0 } else { random.len() }
}

fn new_mentions(records: &[DraftRecord], corpus: &Corpus) -> BTreeMap<String, usize> {
    let mut known: BTreeSet<(String, Vec<String>)> = BTreeSet::new();
    for sentence in corpus.sentences() {
        for mention in sentence.mentions() {
            let tokens = sentence.tokens()[mention.tokens].iter().map(ToString::to_string);
            known.insert((corpus.types().name(mention.entity_type).to_owned(), tokens.collect()));
        }
    }
    let mut counts = BTreeMap::new();
    let kept = records.iter().filter(|record| record.verdict == Verdict::Kept);
    for (entity_type, tokens) in kept.flat_map(|record| record.new_mentions(corpus)) {
        if known.insert((entity_type.clone(), tokens)) {
            *counts.entry(entity_type).or_default() += 1;
        }
    }
    counts
}
