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
    let needed = settings.n_needed(votes.len());
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
    let is_same = |vote: &&&Vote| {
        let inside =
            |one: &&Mention| one.tokens.start < tokens.end && tokens.start < one.tokens.end;
        vote.mentions.iter().filter(inside).eq(&mentions)
    };
    let same: Vec<_> = votes.iter().filter(is_same).collect();
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
pub(super) fn count_mentions(votes: &[&Vote]) -> Vec<ProposedMention> {
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
    // A mention that overlaps tokens that are left out would be cut, so its tokens are left out too. This may reach
    // another mention.
    let mut is_changed = true;
    while is_changed {
        is_changed = false;
        for one in proposed {
            let own = &mut is_free[one.mention.tokens.clone()];
            if own.contains(&false) && own.contains(&true) {
                own.fill(false);
                is_changed = true;
            }
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::{ModelClass, ModelClasses, PlanTable, Preset};
    use melm_text::EntityTypes;

    fn settings(edits: &[&str]) -> SelfTrainingSettings {
        let mut table = PlanTable::new(Preset::Best, ModelClasses::both(ModelClass::MINI));
        for edit in edits {
            table.set(&format!("self_training.{edit}")).unwrap();
        }
        table.plan().unwrap().self_training
    }

    /// Returns a vote for mentions given as type, first token and the token after the last.
    fn vote(probability: f64, mentions: &[(&str, usize, usize)]) -> Vote {
        let mut types = EntityTypes::default();
        for name in ["PER", "LOC"] {
            types.intern(name);
        }
        let mention = |(name, start, end): &(&str, usize, usize)| Mention {
            entity_type: types.find(name).unwrap(),
            tokens: *start..*end,
        };
        let mentions = mentions.iter().map(mention).collect();
        Vote { mentions, log_probability: f64::ln(probability) }
    }

    fn decision(votes: &[Vote], edits: &[&str]) -> Decision {
        decide(&votes.iter().collect::<Vec<_>>(), 10, &settings(edits))
    }

    /// Five taggers: all find the person, four the place at 6, one another place at 8.
    fn five() -> Vec<Vote> {
        let both = || vote(0.9, &[("PER", 0, 2), ("LOC", 6, 7)]);
        let person = vote(0.5, &[("PER", 0, 2)]);
        let three = vote(0.6, &[("PER", 0, 2), ("LOC", 6, 7), ("LOC", 8, 9)]);
        vec![both(), both(), both(), person, three]
    }

    #[test]
    fn a_sentence_needs_votes_for_all_its_tags() {
        let strict = decision(&five(), &["agreement=sentence", "votes=1.0"]);
        assert_eq!((strict.verdict, strict.votes), (Verdict::Disagrees, 3));
        let lenient = decision(&five(), &["agreement=sentence", "votes=0.6"]);
        assert_eq!(lenient.verdict, Verdict::New);
        assert_eq!(lenient.mentions, five()[0].mentions);
        let same = vec![five()[0].clone(); 5];
        assert_eq!(decision(&same, &["agreement=sentence", "votes=1.0"]).verdict, Verdict::New);
    }

    #[test]
    fn a_mention_needs_votes_or_votes_against_it() {
        // The place at 6 has 4 votes, the one at 8 has 4 votes against it.
        let four = decision(&five(), &["agreement=mention", "votes=0.8"]);
        assert_eq!((four.verdict, four.mentions), (Verdict::New, five()[0].mentions.clone()));
        let all = decision(&five(), &["agreement=mention", "votes=1.0"]);
        assert_eq!(all.verdict, Verdict::Disagrees);
        // Two of five is neither enough for the mention nor enough against it.
        let mut votes = five();
        votes[0] = votes[4].clone();
        let two = decision(&votes, &["agreement=mention", "votes=0.8"]);
        assert_eq!(two.verdict, Verdict::Disagrees);
        assert_eq!(two.proposed.iter().map(|one| one.votes).collect::<Vec<_>>(), [5, 4, 2]);
    }

    #[test]
    fn a_part_has_no_disputed_mention_and_cuts_none() {
        let part = decision(&five(), &["agreement=part", "votes=1.0"]);
        assert_eq!((part.tokens.clone(), part.verdict), (0..6, Verdict::New));
        assert_eq!(part.mentions, five()[3].mentions);
        // All five predict these tags for the part.
        assert_eq!(part.votes, 5);
        // One tagger joins tokens 0 to 6 to one person: then no part of five tokens is left.
        let mut votes = five();
        votes[4] = vote(0.5, &[("PER", 0, 7)]);
        let none = decision(&votes, &["agreement=part", "votes=1.0"]);
        assert_eq!((none.tokens.clone(), none.verdict), (7..10, Verdict::Disagrees));
        // Tokens 8 and 9 are disputed. One tagger joins 7 and 8, and four join 0 to 7: nothing is left but the end.
        let long = || vote(0.5, &[("PER", 0, 8)]);
        let votes = [
            long(),
            long(),
            vote(0.5, &[("LOC", 7, 9)]),
            long(),
            vote(0.5, &[("PER", 0, 8), ("LOC", 8, 10)]),
        ];
        let none = decide(
            &votes.iter().collect::<Vec<_>>(),
            12,
            &settings(&["agreement=part", "votes=1.0"]),
        );
        assert_eq!((none.tokens.clone(), none.verdict), (10..12, Verdict::Disagrees));
    }

    #[test]
    fn the_probability_is_a_mean_over_all_taggers() {
        // (0.9 + 0.9 + 0.9) / 5 = 0.54: the two taggers with other tags count as 0.
        let at = |threshold: &str| {
            decision(&five(), &["agreement=probability", &format!("threshold={threshold}")]).verdict
        };
        assert_eq!((at("0.53"), at("0.55")), (Verdict::New, Verdict::Unlikely));
    }

    #[test]
    fn the_needed_votes_are_rounded_up() {
        let needed =
            |panel: usize, votes: &str| settings(&[&format!("votes={votes}")]).n_needed(panel);
        assert_eq!((needed(5, "0.6"), needed(5, "0.61"), needed(3, "1.0")), (3, 4, 3));
        assert_eq!((needed(1, "1.0"), needed(4, "0.75"), needed(2, "0.51")), (1, 3, 2));
    }
}
