//! Scores sentences by the disagreement of a panel, and chooses the tags that are suggested.

use std::collections::BTreeMap;

use melm_text::{EntityType, Mention};

use super::settings::{PickScore, PickSettings};
use crate::random::StreamKey;
use crate::self_training::{ProposedMention, TextCandidate};

/// The scores of a sentence. They are compared in the order of the fields.
#[derive(Clone, Copy, Debug, Default, PartialEq, PartialOrd)]
pub(super) struct Scores {
    /// The score that the plan names, 0 or more.
    pub(super) score: f64,
    /// 1 minus the mean probability that the taggers give to their own tags. A small panel gives many sentences the same
    /// score; this orders them.
    pub(super) doubt: f64,
}

impl Scores {
    /// Computes the scores of a sentence. `key` is the random stream for the score `"random"`.
    pub(super) fn new(candidate: &TextCandidate, settings: &PickSettings, key: StreamKey) -> Self {
        let (n_tokens, n_taggers) = (candidate.sentence.tokens().len(), candidate.n_taggers);
        let n = candidate.probabilities.len().max(1) as f64;
        let doubt = 1.0 - candidate.probabilities.iter().sum::<f64>() / n;
        let sum = match settings.score {
            PickScore::Entropy => token_entropy(&candidate.proposed, n_tokens, n_taggers),
            PickScore::Mentions => mention_entropy(&candidate.proposed, n_taggers),
            PickScore::Probability => {
                let surprise = |p: &f64| -p.max(f64::MIN_POSITIVE).ln();
                candidate.probabilities.iter().map(surprise).sum::<f64>() / n
            }
            PickScore::Random => {
                let score = key.at(candidate.number as u64).generator().uniform();
                return Self { score, doubt };
            }
        };
        // A sum of logarithms may be slightly below 0.
        let score = sum.max(0.0) / (n_tokens as f64).powf(settings.length_power.value());
        Self { score, doubt }
    }

    /// Returns the scores of a sentence that counts less because it is similar to another.
    pub(super) fn scaled(self, factor: f64) -> Self {
        Self { score: self.score * factor, doubt: self.doubt * factor }
    }
}

/// Returns the mentions that more than half of the taggers predict, in order. Two of them never overlap, because a tagger
/// would have to predict both.
pub(super) fn majority(proposed: &[ProposedMention], n_taggers: usize) -> Vec<Mention> {
    let is_chosen = |one: &&ProposedMention| 2 * one.votes > n_taggers;
    proposed.iter().filter(is_chosen).map(|one| one.mention.clone()).collect()
}

/// Returns the entropy, in nats, of the votes for the tag of a token, summed over tokens (Dagan and Engelson 1995). Two
/// taggers give a token the same tag if both predict a mention of the same type there that begins at this token, or both
/// one that began before it, or both none.
fn token_entropy(proposed: &[ProposedMention], n_tokens: usize, n_taggers: usize) -> f64 {
    let mut counts: Vec<BTreeMap<(EntityType, bool), usize>> = vec![BTreeMap::new(); n_tokens];
    for ProposedMention { mention, votes } in proposed {
        for token in mention.tokens.clone() {
            let is_first = token == mention.tokens.start;
            *counts[token].entry((mention.entity_type, is_first)).or_default() += votes;
        }
    }
    let of_token = |counts: &BTreeMap<_, usize>| {
        let n_outside = n_taggers - counts.values().sum::<usize>();
        let shares = counts.values().copied().chain([n_outside]);
        entropy(shares.map(|n| n as f64 / n_taggers as f64))
    };
    counts.iter().map(of_token).sum()
}

/// Returns the entropy of the votes for and against each proposed mention, summed over mentions.
fn mention_entropy(proposed: &[ProposedMention], n_taggers: usize) -> f64 {
    let of_mention = |one: &ProposedMention| {
        let share = one.votes as f64 / n_taggers as f64;
        entropy([share, 1.0 - share].into_iter())
    };
    proposed.iter().map(of_mention).sum()
}

/// Returns the entropy of a distribution in nats.
fn entropy(shares: impl Iterator<Item = f64>) -> f64 {
    -shares.filter(|share| *share > 0.0).map(|share| share * share.ln()).sum::<f64>()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::draft::Verdict;
    use crate::random::Seed;
    use crate::rate::Rate;
    use melm_text::{EntityTypes, Sentence, Tag, Token};

    /// Ten tokens and five taggers: all find the person at 0 and 1, four the place at 6; three find a place at 8, one a
    /// person at 8 and 9, one nothing there.
    fn candidate() -> TextCandidate {
        let mut types = EntityTypes::default();
        let [person, place] = ["PER", "LOC"].map(|name| types.intern(name));
        let one = |entity_type, tokens: std::ops::Range<usize>, votes| ProposedMention {
            mention: Mention { entity_type, tokens },
            votes,
        };
        let tokens = (0..10).map(|at| Token::new(&format!("w{at}")).unwrap()).collect();
        TextCandidate {
            sentence: Sentence::new(tokens, vec![Tag::Outside; 10]).unwrap(),
            number: 3,
            pass: 1,
            first_token: 0,
            votes: 0,
            n_taggers: 5,
            probabilities: vec![0.5, 0.5, 0.25, 0.25, 0.5],
            proposed: vec![
                one(person, 0..2, 5),
                one(place, 6..7, 4),
                one(place, 8..9, 3),
                one(person, 8..10, 1),
            ],
            verdict: Verdict::Disagrees,
        }
    }

    fn score(score: PickScore, length_power: f64) -> f64 {
        let length_power = Rate::constant(length_power);
        let settings = PickSettings { score, length_power, ..PickSettings::default() };
        Scores::new(&candidate(), &settings, Seed(1).stream("pick")).score
    }

    #[test]
    fn scores_are_those_computed_by_hand() {
        let h = |shares: &[f64]| -shares.iter().map(|p| p * p.ln()).sum::<f64>();
        let near = |found: f64, expected: f64| {
            assert!((found - expected).abs() < 1e-12, "{found}, expected {expected}");
        };
        // Tokens 6, 8 and 9: (4, 1), (3, 1, 1) and (1, 4) of 5 votes. Token 9 is inside a person for one tagger.
        let tokens = h(&[0.8, 0.2]) + h(&[0.6, 0.2, 0.2]) + h(&[0.2, 0.8]);
        near(score(PickScore::Entropy, 0.0), tokens);
        near(score(PickScore::Entropy, 1.0), tokens / 10.0);
        near(score(PickScore::Entropy, 0.5), tokens / 10.0_f64.sqrt());
        near(score(PickScore::Mentions, 0.0), 2.0 * h(&[0.8, 0.2]) + h(&[0.6, 0.4]));
        // The taggers give their own tags 1/2, 1/2, 1/4, 1/4, 1/2: seven halvings over five taggers.
        near(score(PickScore::Probability, 0.0), 7.0 / 5.0 * 2.0_f64.ln());
        let key = Seed(1).stream("pick");
        near(Scores::new(&candidate(), &PickSettings::default(), key).doubt, 0.6);
    }

    #[test]
    fn more_than_half_of_the_taggers_suggest_a_mention() {
        let found = majority(&candidate().proposed, 5);
        let spans: Vec<_> = found.iter().map(|one| one.tokens.clone()).collect();
        assert_eq!(spans, [0..2, 6..7, 8..9]);
        // Two of four is not more than half.
        assert_eq!(majority(&candidate().proposed[1..2], 8), []);
    }
}
