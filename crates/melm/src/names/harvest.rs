//! Names that the panel finds in unlabelled text.

use std::collections::BTreeMap;

use melm_text::{Corpus, EntityType, Sentence, Token};

use super::{NameOrigin, Names, NamesSettings, gold_mentions};
use crate::self_training::TextCandidate;

/// What the panel found about one text: how often it occurs as a mention, and how many taggers say so.
#[derive(Default)]
struct Found {
    types: Vec<EntityType>,
    n_occurrences: usize,
    n_votes: usize,
    n_taggers: usize,
}

/// Returns the names that the panel finds in the sentences of `text` often enough, always with one type, and with enough
/// votes. Mentions of gold are left out. `gold` has the entity types of the candidates.
pub(crate) fn harvest(
    text: &[Sentence],
    candidates: &[TextCandidate],
    gold: &Corpus,
    settings: &NamesSettings,
) -> Names {
    let mut found: BTreeMap<&[Token], Found> = BTreeMap::new();
    for candidate in candidates {
        for proposed in &candidate.proposed {
            let tokens = &text[candidate.number].tokens()[proposed.mention.tokens.clone()];
            let one = found.entry(tokens).or_default();
            if !one.types.contains(&proposed.mention.entity_type) {
                one.types.push(proposed.mention.entity_type);
            }
            one.n_occurrences += 1;
            one.n_votes += proposed.votes;
            one.n_taggers += candidate.n_taggers;
        }
    }
    let known = gold_mentions(gold);
    let mut names = Names { origin: NameOrigin::Harvest, ..Names::default() };
    for (tokens, one) in found {
        let is_frequent = one.n_occurrences >= settings.harvest_count.get();
        let share = one.n_votes as f64 / one.n_taggers.max(1) as f64;
        let is_agreed = share >= settings.harvest_votes.value() - 1e-9;
        if let ([entity_type], true, true, false) =
            (&one.types[..], is_frequent, is_agreed, known.contains_key(tokens))
        {
            names.by_type.entry(*entity_type).or_default().push(tokens.to_vec());
        }
    }
    names
}

#[cfg(test)]
mod tests {
    use melm_text::{Mention, ReadOptions, Source};

    use super::*;
    use crate::draft::Verdict;
    use crate::rate::Rate;
    use crate::self_training::ProposedMention;

    /// A sentence of the text in which taggers of a panel of five propose mentions of one token.
    fn candidate(gold: &Corpus, number: usize, proposed: &[(usize, &str, usize)]) -> TextCandidate {
        let mention = |(token, name, votes): &(usize, &str, usize)| ProposedMention {
            mention: Mention {
                entity_type: gold.types().find(name).unwrap(),
                tokens: *token..token + 1,
            },
            votes: *votes,
        };
        TextCandidate {
            sentence: gold.sentences()[0].clone(),
            number,
            pass: 1,
            first_token: 0,
            votes: 5,
            n_taggers: 5,
            probabilities: Vec::new(),
            proposed: proposed.iter().map(mention).collect(),
            verdict: Verdict::Kept,
        }
    }

    #[test]
    fn frequent_names_with_one_type_and_enough_votes_are_harvested() {
        let read = |text: &str| {
            Corpus::read(&Source::from_text("a", text), &ReadOptions::default()).unwrap()
        };
        let gold = read("Ada B-PER\nin O\nBonn B-LOC\n");
        let text =
            read("Oslo O\nAda O\n\nOslo O\nEve O\n\nEve O\nMay O\n\nMay O\nRio O\n\nRio O\n");
        let proposals: [&[(usize, &str, usize)]; 5] = [
            // Oslo has all votes; Ada is known.
            &[(0, "LOC", 5), (1, "PER", 5)],
            &[(0, "LOC", 5), (1, "PER", 5)],
            // Eve has two types, May too few votes.
            &[(0, "LOC", 5), (1, "PER", 5)],
            &[(0, "PER", 4), (1, "LOC", 5)],
            &[],
        ];
        let numbered = proposals.iter().enumerate();
        let all: Vec<_> = numbered.map(|(at, some)| candidate(&gold, at, some)).collect();
        let settings =
            NamesSettings { harvest_count: 2.try_into().unwrap(), ..NamesSettings::default() };
        let names = |settings: &NamesSettings| -> Vec<String> {
            let names = harvest(text.sentences(), &all, &gold, settings);
            let all = names.by_type.values().flatten().flatten();
            all.map(ToString::to_string).collect()
        };
        assert_eq!(names(&settings), ["Oslo"]);
        let lenient = NamesSettings { harvest_votes: Rate::constant(0.9), ..settings };
        assert_eq!(names(&lenient), ["May", "Oslo"]);
        let once = NamesSettings { harvest_count: 1.try_into().unwrap(), ..settings };
        assert_eq!(names(&once), ["Oslo", "Rio"]);
    }
}
