//! Sentences that somebody else labelled: the panel decides which of their mentions are kept.

use std::num::NonZeroUsize;

use melm_text::Mention;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::agreement::{Decision, ProposedMention, count_mentions};
use super::settings::{SelfTrainingSettings, n_needed};
use super::vote::Vote;
use crate::draft::Verdict;
use crate::rate::Rate;

/// Which sentences of silver files are kept: the section `silver` of the plan.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SilverSettings {
    /// The rule for mentions that the panel contradicts: `"mention"`, `"sentence"` or `"off"`.
    pub agreement: SilverRule,
    /// The share of the panel that has to predict a given mention. It may be low, because the given tag is evidence too.
    pub votes: Rate,
    /// The number of parts that the silver sentences are cut into. A tagger of the panel also learns the given tags of all
    /// parts but one, without a check, and votes on that part. So the panel learns from the source, but no tagger confirms
    /// a tag that it has learnt. 1 means that the first panel does not learn given tags. The panel needs as many taggers.
    pub folds: NonZeroUsize,
}

impl Default for SilverSettings {
    /// The values of all presets.
    fn default() -> Self {
        Self {
            agreement: SilverRule::Mention,
            votes: Rate::constant(0.3),
            folds: NonZeroUsize::new(2).expect("2 is not 0"),
        }
    }
}

impl SilverSettings {
    /// The number of parts for a panel: each part needs a tagger.
    pub(super) fn n_folds(&self, panel: NonZeroUsize) -> usize {
        self.folds.min(panel).get()
    }
}

/// The rule for mentions that the panel contradicts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum SilverRule {
    /// A given mention that enough taggers do not predict is removed, and a mention that enough taggers predict is added,
    /// where `self_training.votes` says how many are enough. A sentence with a given mention between the two is rejected.
    Mention,
    /// A sentence with such a mention is rejected.
    Sentence,
    /// The panel does not check: all given mentions are kept.
    Off,
}

/// The tags that somebody else gave to a sentence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GivenTags {
    /// The name of the source.
    pub source: String,
    /// The mentions, in order. Their types are those of gold.
    pub mentions: Vec<Mention>,
}

/// Decides about a sentence of `n_tokens` tokens with given mentions. `votes` has one vote of each tagger.
pub(super) fn decide_given(
    votes: &[&Vote],
    n_tokens: usize,
    given: &[Mention],
    settings: &SelfTrainingSettings,
    silver: SilverSettings,
) -> Decision {
    let proposed = count_mentions(votes);
    let checked = match silver.agreement {
        SilverRule::Off => Some(given.to_vec()),
        SilverRule::Mention | SilverRule::Sentence => {
            let needed = Needed {
                taggers: votes.len(),
                enough: n_needed(silver.votes, votes.len()),
                certain: settings.n_needed(votes.len()),
            };
            let corrected = needed.correct(given, &proposed);
            corrected.filter(|found| silver.agreement == SilverRule::Mention || found == given)
        }
    };
    let verdict = if checked.is_some() { Verdict::New } else { Verdict::Disagrees };
    let mentions = checked.unwrap_or_else(|| given.to_vec());
    let n_same = votes.iter().filter(|vote| vote.mentions == mentions).count();
    Decision { mentions, tokens: 0..n_tokens, votes: n_same, proposed, verdict }
}

/// The numbers of votes that decide about a mention.
struct Needed {
    /// All taggers.
    taggers: usize,
    /// So many votes are enough for a given mention.
    enough: usize,
    /// So many votes are enough for a mention that is not given, or against a given one.
    certain: usize,
}

impl Needed {
    /// Removes given mentions that the panel is certain against, and adds mentions that it is certain of. Returns `None` if
    /// a given mention is neither certain nor has enough votes, or if two mentions overlap.
    fn correct(&self, given: &[Mention], proposed: &[ProposedMention]) -> Option<Vec<Mention>> {
        let mut mentions: Vec<Mention> = Vec::new();
        for mention in given {
            let found = proposed.iter().find(|one| one.mention == *mention);
            match found.map_or(0, |one| one.votes) {
                n if n >= self.enough => mentions.push(mention.clone()),
                n if n <= self.taggers - self.certain => {}
                _ => return None,
            }
        }
        let is_missing =
            |one: &&ProposedMention| one.votes >= self.certain && !given.contains(&one.mention);
        mentions.extend(proposed.iter().filter(is_missing).map(|one| one.mention.clone()));
        mentions.sort_by_key(|mention| mention.tokens.start);
        // A given mention with few votes may overlap one that almost all taggers predict.
        let is_apart = |pair: &[Mention]| pair[0].tokens.end <= pair[1].tokens.start;
        mentions.windows(2).all(is_apart).then_some(mentions)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::{ModelClass, ModelClasses, PlanTable, Preset};
    use melm_text::EntityTypes;

    /// Returns mentions given as type, first token and the token after the last.
    fn mentions(all: &[(&str, usize, usize)]) -> Vec<Mention> {
        let mut types = EntityTypes::default();
        for name in ["PER", "LOC"] {
            types.intern(name);
        }
        let mention = |(name, start, end): &(&str, usize, usize)| Mention {
            entity_type: types.find(name).unwrap(),
            tokens: *start..*end,
        };
        all.iter().map(mention).collect()
    }

    fn decision(given: &[(&str, usize, usize)], edits: &[&str]) -> (Vec<Mention>, Verdict) {
        let mut table = PlanTable::new(Preset::Best, ModelClasses::both(ModelClass::MINI));
        for edit in edits {
            table.set(edit).unwrap();
        }
        let plan = table.plan().unwrap();
        let vote =
            |all: &[(&str, usize, usize)]| Vote { mentions: mentions(all), log_probability: -1.0 };
        // Five taggers: all find the person, two the place at 4, one the place at 6, four the person at 8.
        let votes = [
            vote(&[("PER", 0, 2), ("LOC", 4, 5), ("PER", 8, 9)]),
            vote(&[("PER", 0, 2), ("LOC", 4, 5), ("PER", 8, 9)]),
            vote(&[("PER", 0, 2), ("LOC", 6, 7), ("PER", 8, 9)]),
            vote(&[("PER", 0, 2), ("PER", 8, 9)]),
            vote(&[("PER", 0, 2)]),
        ];
        let votes: Vec<&Vote> = votes.iter().collect();
        let given = mentions(given);
        let found = decide_given(&votes, 10, &given, &plan.self_training, plan.silver);
        (found.mentions, found.verdict)
    }

    #[test]
    fn given_mentions_need_few_votes_and_the_panel_corrects_clear_mistakes() {
        let given = [("PER", 0, 2), ("LOC", 4, 5), ("LOC", 6, 7)];
        // 0.3 of 5 are 2 votes: the place at 4 stays. At 6 there is 1 vote, so 4 are against it. At 8 there are 4.
        let (found, verdict) = decision(&given, &[]);
        assert_eq!(verdict, Verdict::New);
        assert_eq!(found, mentions(&[("PER", 0, 2), ("LOC", 4, 5), ("PER", 8, 9)]));
        assert_eq!(decision(&given, &["silver.agreement=sentence"]).1, Verdict::Disagrees);
        // With 0.6, two votes are neither enough for the place at 4 nor, with four needed, enough against it.
        assert_eq!(decision(&given, &["silver.votes=0.6"]).1, Verdict::Disagrees);
        let right = [("PER", 0, 2), ("PER", 8, 9)];
        let (found, verdict) = decision(&right, &["silver.agreement=sentence", "silver.votes=0.8"]);
        assert_eq!((found, verdict), (mentions(&right), Verdict::New));
    }

    #[test]
    fn another_type_or_border_is_another_mention() {
        for wrong in [[("LOC", 0, 2), ("PER", 8, 9)], [("PER", 0, 1), ("PER", 8, 9)]] {
            let (found, verdict) = decision(&wrong, &[]);
            assert_eq!(verdict, Verdict::New);
            assert_eq!(found, mentions(&[("PER", 0, 2), ("PER", 8, 9)]), "{wrong:?}");
            assert_eq!(decision(&wrong, &["silver.agreement=sentence"]).1, Verdict::Disagrees);
        }
        let wrong = [("LOC", 3, 4), ("PER", 8, 10)];
        let (found, verdict) = decision(&wrong, &["silver.agreement=off"]);
        assert_eq!((found, verdict), (mentions(&wrong), Verdict::New));
    }
}
