//! Chooses the sentences that are kept among those that the panel agrees on.

use melm_text::{EntityType, EntityTypes};

use super::TextCandidate;
use super::settings::{Choice, SelfTrainingSettings};
use crate::draft::Verdict;
use crate::random::StreamKey;

/// Gives every candidate with the verdict [`Verdict::New`] its final verdict: kept, over the cap, or without a
/// mention. `max_kept` is the maximum number of kept sentences with a mention.
pub(super) fn select(
    candidates: &mut [TextCandidate],
    settings: &SelfTrainingSettings,
    max_kept: usize,
    types: &EntityTypes,
    key: StreamKey,
) {
    let agreed = |candidates: &[TextCandidate], has_mentions: bool| -> Vec<usize> {
        let is_wanted = |at: &usize| {
            let one = &candidates[*at];
            one.verdict == Verdict::New && one.sentence.mentions().next().is_some() == has_mentions
        };
        (0..candidates.len()).filter(is_wanted).collect()
    };
    let with = agreed(candidates, true);
    let kept = match settings.choice {
        Choice::Random => choose_at_random(&with, max_kept, key.then("with mentions")),
        Choice::Balanced => choose_balanced(candidates, &with, max_kept, types, key),
    };
    let share = settings.without_mentions.value() * kept.len() as f64;
    let n_without = (1..=kept.len()).filter(|n| *n as f64 <= share + 0.5).count();
    let without = agreed(candidates, false);
    let kept_without = choose_at_random(&without, n_without, key.then("without mentions"));
    for (all, reason) in [(with, Verdict::OverCap), (without, Verdict::NoMention)] {
        for at in all {
            candidates[at].verdict = reason;
        }
    }
    for at in kept.into_iter().chain(kept_without) {
        candidates[at].verdict = Verdict::Kept;
    }
}

fn choose_at_random(positions: &[usize], n: usize, key: StreamKey) -> Vec<usize> {
    let chosen = key.generator().subset(positions.len(), n.min(positions.len()));
    chosen.into_iter().map(|at| positions[at]).collect()
}

/// Chooses sentences one by one in random order, each time one with a mention of the type that has the fewest mentions
/// so far.
fn choose_balanced(
    candidates: &[TextCandidate],
    positions: &[usize],
    n: usize,
    types: &EntityTypes,
    key: StreamKey,
) -> Vec<usize> {
    let order = key.then("balanced").generator().permutation(positions.len());
    let mut counts = vec![0; types.iter().count()];
    // For each type, the sentences that have a mention of it; the next one to choose comes last.
    let mut queues: Vec<Vec<usize>> = vec![Vec::new(); counts.len()];
    for at in order.into_iter().rev() {
        let mut present: Vec<EntityType> =
            candidates[positions[at]].sentence.mentions().map(|m| m.entity_type).collect();
        present.sort_unstable();
        present.dedup();
        for one in present {
            queues[one.index()].push(positions[at]);
        }
    }
    let mut is_chosen = vec![false; candidates.len()];
    let mut chosen = Vec::new();
    while chosen.len() < n {
        for queue in &mut queues {
            while queue.last().is_some_and(|at| is_chosen[*at]) {
                queue.pop();
            }
        }
        let rarest = (0..queues.len()).filter(|one| !queues[*one].is_empty());
        let Some(rarest) = rarest.min_by_key(|one| counts[*one]) else { break };
        let at = queues[rarest].pop().expect("the queue is not empty");
        is_chosen[at] = true;
        for mention in candidates[at].sentence.mentions() {
            counts[mention.entity_type.index()] += 1;
        }
        chosen.push(at);
    }
    chosen
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::{ModelClass, ModelClasses, PlanTable, Preset};
    use crate::random::Seed;
    use melm_text::{Corpus, ReadOptions, Source};

    /// Thirty sentences with a person, three with a place, ten without a mention; one more person is disputed.
    fn candidates() -> (Corpus, Vec<TextCandidate>) {
        let mut text = String::new();
        for number in 0..44 {
            let tag = match number {
                0..=30 => "B-PER",
                31..=33 => "B-LOC",
                _ => "O",
            };
            text += &format!("word{number} {tag}\n\n");
        }
        let corpus = Corpus::read(&Source::from_text("a", text), &ReadOptions::default()).unwrap();
        let candidate = |(number, sentence): (usize, &melm_text::Sentence)| TextCandidate {
            sentence: sentence.clone(),
            number,
            pass: 1,
            first_token: 0,
            votes: 3,
            n_taggers: 3,
            probabilities: vec![0.9; 3],
            proposed: Vec::new(),
            verdict: if number == 0 { Verdict::Disagrees } else { Verdict::New },
        };
        let all = corpus.sentences().iter().enumerate().map(candidate).collect();
        (corpus, all)
    }

    /// Returns the number of kept persons, places and sentences without a mention, and of those over the cap.
    fn counts(edits: &[&str], max_kept: usize) -> [usize; 4] {
        let mut table = PlanTable::new(Preset::Best, ModelClasses::both(ModelClass::MINI));
        for edit in edits {
            table.set(&format!("self_training.{edit}")).unwrap();
        }
        let settings = table.plan().unwrap().self_training;
        let (corpus, mut all) = candidates();
        select(&mut all, &settings, max_kept, corpus.types(), Seed(1).stream("test"));
        assert_eq!(all[0].verdict, Verdict::Disagrees);
        assert!(all.iter().all(|one| one.verdict != Verdict::New));
        let n = |numbers: std::ops::Range<usize>, verdict: Verdict| {
            all[numbers].iter().filter(|one| one.verdict == verdict).count()
        };
        let kept = Verdict::Kept;
        [n(0..31, kept), n(31..34, kept), n(34..44, kept), n(0..44, Verdict::OverCap)]
    }

    #[test]
    fn the_cap_counts_sentences_with_mentions() {
        assert_eq!(counts(&["choice=random"], 100), [30, 3, 0, 0]);
        let [persons, places, without, over] = counts(&["choice=random"], 12);
        assert_eq!((persons + places, without, over), (12, 0, 21));
        // Half of 12 kept sentences is 6.
        assert_eq!(counts(&["choice=random", "without_mentions=0.5"], 12)[2], 6);
    }

    #[test]
    fn a_balanced_choice_takes_all_of_a_rare_type() {
        assert_eq!(counts(&["choice=balanced"], 12), [9, 3, 0, 21]);
        assert_eq!(counts(&["choice=balanced"], 4), [2, 2, 0, 29]);
    }
}
