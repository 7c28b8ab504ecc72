//! Combines the votes of a panel for one sentence.

use std::collections::BTreeMap;
use std::ops::Range;

use melm_text::{EntityType, Mention};

use super::settings::{Agreement, SelfTrainingSettings};
use super::vote::Vote;
use crate::draft::Verdict;

/// The fewest tokens of a part that is kept instead of a whole sentence.
const SHORTEST_PART: usize = 5;

/// A mention that at least one tagger predicts, and how many do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProposedMention {
    /// The mention.
    pub mention: Mention,
    /// The number of taggers that predict it.
    pub votes: usize,
}

/// The decision of a panel about one sentence.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Decision {
    /// The mentions of the label that the panel chose. They refer to the whole sentence.
    pub(super) mentions: Vec<Mention>,
    /// The tokens that are kept: the whole sentence, except for the rule [`Agreement::Part`].
    pub(super) tokens: Range<usize>,
    /// The number of taggers that predict exactly `mentions`.
    pub(super) votes: usize,
    /// Every mention that any tagger predicts.
    pub(super) proposed: Vec<ProposedMention>,
    /// [`Verdict::New`] if the sentence may be kept, otherwise the reason against it.
    pub(super) verdict: Verdict,
}

/// Combines the votes for a sentence of `n_tokens` tokens. `votes` has one vote of each tagger.
pub(super) fn decide(
    votes: &[&Vote],
    n_tokens: usize,
    settings: &SelfTrainingSettings,
) -> Decision {
    let proposed = count_mentions(votes);
    let needed = settings.n_needed();
    let is_accepted = |one: &&ProposedMention| one.votes >= needed;
    let is_disputed =
        |one: &ProposedMention| one.votes < needed && one.votes > votes.len() - needed;
    let mut tokens = 0..n_tokens;
    let (mentions, is_agreed) = match settings.agreement {
        Agreement::Sentence | Agreement::Probability => (most_common(votes), None),
        Agreement::Mention => {
            let accepted = proposed.iter().filter(is_accepted).map(|one| one.mention.clone());
            (accepted.collect(), Some(!proposed.iter().any(is_disputed)))
        }
        Agreement::Part => {
            tokens = longest_part(&proposed, is_disputed, n_tokens);
            let is_inside = |mention: &Mention| {
                tokens.start <= mention.tokens.start && mention.tokens.end <= tokens.end
            };
            let accepted = proposed.iter().filter(is_accepted).map(|one| one.mention.clone());
            let is_long = tokens.len() >= SHORTEST_PART.min(n_tokens);
            (accepted.filter(is_inside).collect::<Vec<_>>(), Some(is_long))
        }
    };
    let same: Vec<_> = votes.iter().filter(|vote| vote.mentions == mentions).collect();
    let probabilities: f64 = same.iter().map(|vote| vote.log_probability.exp()).sum();
    let probability = probabilities / votes.len() as f64;
    let verdict = if settings.agreement == Agreement::Probability {
        if probability >= settings.threshold.value() { Verdict::New } else { Verdict::Unlikely }
    } else if is_agreed.unwrap_or(same.len() >= needed) {
        Verdict::New
    } else {
        Verdict::Disagrees
    };
    Decision { votes: same.len(), mentions, tokens, proposed, verdict }
}

/// Counts the votes of every mention that any tagger predicts. Returns the mentions in the order of the sentence.
fn count_mentions(votes: &[&Vote]) -> Vec<ProposedMention> {
    let mut counts: BTreeMap<(usize, usize, EntityType), usize> = BTreeMap::new();
    for mention in votes.iter().flat_map(|vote| &vote.mentions) {
        let key = (mention.tokens.start, mention.tokens.end, mention.entity_type);
        *counts.entry(key).or_default() += 1;
    }
    let proposed = counts.into_iter().map(|((start, end, entity_type), votes)| ProposedMention {
        mention: Mention { entity_type, tokens: start..end },
        votes,
    });
    proposed.collect()
}

/// Returns the mentions that most taggers predict. Of several with the same number of votes, returns those of the
/// earliest tagger.
fn most_common(votes: &[&Vote]) -> Vec<Mention> {
    let count = |one: &&&Vote| votes.iter().filter(|other| other.mentions == one.mentions).count();
    // `max_by_key` returns the last of several, so the order is reversed.
    let best = votes.iter().rev().max_by_key(count);
    best.map(|vote| vote.mentions.clone()).unwrap_or_default()
}

/// Returns the longest run of tokens without a disputed mention that does not cut any proposed mention.
fn longest_part(
    proposed: &[ProposedMention],
    is_disputed: impl Fn(&ProposedMention) -> bool,
    n_tokens: usize,
) -> Range<usize> {
    let mut is_free = vec![true; n_tokens];
    for one in proposed.iter().filter(|one| is_disputed(one)) {
        is_free[one.mention.tokens.clone()].fill(false);
    }
    // A mention that overlaps a disputed one would be cut, so its tokens are left out too.
    for one in proposed {
        if is_free[one.mention.tokens.clone()].contains(&false) {
            is_free[one.mention.tokens.clone()].fill(false);
        }
    }
    let mut best = 0..0;
    let mut start = 0;
    for run in is_free.split(|free| !free) {
        if run.len() > best.len() {
            best = start..start + run.len();
        }
        start += run.len() + 1;
    }
    best
}
