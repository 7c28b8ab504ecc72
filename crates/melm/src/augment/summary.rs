//! Counts of drafts by verdict.

use std::collections::{BTreeMap, HashSet};

use melm_text::Corpus;
use serde::{Deserialize, Serialize};

use crate::draft::{Draft, Verdict, is_zero};
use crate::methods::RejectedCounts;

/// The number of drafts by verdict, and the number of new mentions in the kept drafts.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DraftSummary {
    /// The number of sentences that a method wrote but that did not become drafts, by reason. Empty for methods that
    /// fill masks.
    #[serde(default, skip_serializing_if = "RejectedCounts::is_empty")]
    pub dropped: RejectedCounts,
    /// The number of all drafts.
    pub drafts: usize,
    /// The number of drafts that repeat their source.
    pub repeat_source: usize,
    /// The number of drafts that repeat another gold sentence.
    pub repeat_gold: usize,
    /// The number of drafts that repeat an earlier draft.
    pub repeat_draft: usize,
    /// The number of drafts in which a replaced mention repeats the token beside it.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub repeat_token: usize,
    /// The number of drafts with a mention that the masked language model finds too unlikely.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub unlikely_mention: usize,
    /// The number of drafts for which the judge predicts other tags.
    pub disagrees: usize,
    /// The number of drafts whose tags the judge finds too unlikely.
    pub unlikely: usize,
    /// The number of drafts in the augmented set.
    pub kept: usize,
    /// The number of copies of sentences without a mention. The copies are in the augmented set too.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub copied: usize,
    /// The number of drafts that a person accepted. They are in the augmented set too.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub accepted: usize,
    /// The number of drafts that a person rejected.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub rejected: usize,
    /// The number of drafts that have not been judged.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub new: usize,
    /// The number of tokens, over all drafts, that kept their old text because the guessed pieces did not spell a
    /// valid token.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub restored_tokens: usize,
    /// The number of mentions, over all drafts, that were chosen at random because there was no vector to compare by.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub without_vector: usize,
    /// The number of kept drafts with at least one name of a list, or of the unlabelled text.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub with_names: usize,
    /// The number of distinct mentions in the kept drafts that do not occur in gold, by entity type.
    pub new_mentions: BTreeMap<String, usize>,
}

impl DraftSummary {
    /// Counts drafts of a gold corpus. `dropped` counts the sentences that did not become drafts.
    pub fn new(drafts: &[Draft], dropped: &RejectedCounts, gold: &Corpus) -> Self {
        let count = |verdict| drafts.iter().filter(|draft| draft.verdict == verdict).count();
        Self {
            dropped: dropped.clone(),
            drafts: drafts.len(),
            repeat_source: count(Verdict::RepeatsSource),
            repeat_gold: count(Verdict::RepeatsGold),
            repeat_draft: count(Verdict::RepeatsDraft),
            repeat_token: count(Verdict::RepeatsToken),
            unlikely_mention: count(Verdict::UnlikelyMention),
            disagrees: count(Verdict::Disagrees),
            unlikely: count(Verdict::Unlikely),
            kept: count(Verdict::Kept),
            copied: count(Verdict::Copied),
            accepted: count(Verdict::Accepted),
            rejected: count(Verdict::Rejected),
            new: count(Verdict::New),
            restored_tokens: drafts.iter().map(|draft| draft.n_restored).sum(),
            without_vector: count_without_vector(drafts),
            with_names: count_with_names(drafts),
            new_mentions: count_new_mentions(drafts, gold),
        }
    }

    /// Returns true if there were new drafts and the judge rejected all of them.
    pub fn all_rejected(&self) -> bool {
        self.kept + self.copied + self.accepted == 0 && self.disagrees + self.unlikely > 0
    }
}

/// Counts the mentions that were chosen at random although the method chooses by similarity. Returns 0 if no mention
/// was chosen by similarity, because the method then always chooses at random.
fn count_without_vector(drafts: &[Draft]) -> usize {
    // `mixed` is not counted. Its mentions are already counted in the draft that is the code-mixed sentence itself.
    let donors =
        drafts.iter().flat_map(|draft| &draft.replacements).filter(|one| one.donor.is_some());
    let (similar, random): (Vec<_>, Vec<_>) = donors.partition(|one| one.similarity.is_some());
    if similar.is_empty() { 0 } else { random.len() }
}

fn count_with_names(drafts: &[Draft]) -> usize {
    let has_name = |draft: &&Draft| draft.replacements.iter().any(|one| one.name.is_some());
    drafts.iter().filter(|draft| draft.verdict.is_kept()).filter(has_name).count()
}

fn count_new_mentions(drafts: &[Draft], gold: &Corpus) -> BTreeMap<String, usize> {
    let mut known = HashSet::new();
    for sentence in gold.sentences() {
        for mention in sentence.mentions() {
            known.insert((mention.entity_type, sentence.tokens()[mention.tokens].to_vec()));
        }
    }
    let mut counts = BTreeMap::new();
    let is_kept = |verdict| matches!(verdict, Verdict::Kept | Verdict::Accepted);
    let kept = drafts.iter().filter(|draft| is_kept(draft.verdict));
    for (entity_type, tokens) in kept.flat_map(Draft::new_mentions) {
        if known.insert((entity_type, tokens)) {
            *counts.entry(gold.types().name(entity_type).to_owned()).or_default() += 1;
        }
    }
    counts
}
