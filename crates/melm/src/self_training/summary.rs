//! Counts of the sentences of a text by verdict.

use std::collections::BTreeMap;

use melm_text::EntityTypes;
use serde::{Deserialize, Serialize};

use super::TextCandidate;
use crate::draft::Verdict;

/// The number of sentences of a text by verdict, and the mentions of the kept ones.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TextSummary {
    /// The number of all sentences.
    pub sentences: usize,
    /// The number of sentences that are longer than the model.
    pub too_long: usize,
    /// The number of sentences that the panel disagrees on.
    pub disagrees: usize,
    /// The number of sentences whose tags are too unlikely.
    pub unlikely: usize,
    /// The number of sentences that the panel agrees on, but in which it finds no mention.
    pub no_mention: usize,
    /// The number of sentences that the panel agrees on, but that are more than the cap.
    pub over_cap: usize,
    /// The number of kept sentences.
    pub kept: usize,
    /// The number of mentions in the kept sentences, by entity type.
    pub mentions: BTreeMap<String, usize>,
}

impl TextSummary {
    /// Counts the sentences of a text.
    pub(super) fn new(candidates: &[TextCandidate], types: &EntityTypes) -> Self {
        let count = |verdict| candidates.iter().filter(|one| one.verdict == verdict).count();
        let mut mentions = BTreeMap::new();
        let kept = candidates.iter().filter(|one| one.verdict.is_kept());
        for mention in kept.flat_map(|one| one.sentence.mentions()) {
            *mentions.entry(types.name(mention.entity_type).to_owned()).or_default() += 1;
        }
        Self {
            sentences: candidates.len(),
            too_long: count(Verdict::TooLong),
            disagrees: count(Verdict::Disagrees),
            unlikely: count(Verdict::Unlikely),
            no_mention: count(Verdict::NoMention),
            over_cap: count(Verdict::OverCap),
            kept: count(Verdict::Kept),
            mentions,
        }
    }
}
