//! Cuts a text into parts, so that no tagger votes on sentences whose tags it has learnt.

use crate::plan::Plan;

/// How the text is cut in one pass. The taggers of a part are trained without its sentences, and vote on them.
pub(super) struct Folds {
    /// The number of parts.
    pub(super) count: usize,
    /// The number of sentences, from the first, that are cut into parts. All taggers vote on the others.
    n_cut: usize,
}

impl Folds {
    /// Returns the parts of a pass, counted from 1. The first `n_given` sentences of the text have given tags. They are cut
    /// by `silver.folds`, unless the whole text is cut by `self_training.folds`.
    pub(super) fn new(plan: &Plan, pass: u32, n_given: usize, n_text: usize) -> Self {
        let settings = &plan.self_training;
        match settings.n_folds(pass) {
            1 if n_given == 0 => Self { count: 1, n_cut: 0 },
            1 => Self { count: plan.silver.n_folds(settings.panel), n_cut: n_given },
            count => Self { count, n_cut: n_text },
        }
    }

    /// Returns true if the taggers of a part are not trained on a sentence.
    pub(super) fn is_held_out(&self, number: usize, fold: usize) -> bool {
        self.is_cut(number) && number % self.count == fold
    }

    /// Returns true if the taggers of a part vote on a sentence.
    pub(super) fn votes_on(&self, number: usize, fold: usize) -> bool {
        !self.is_cut(number) || self.is_held_out(number, fold)
    }

    fn is_cut(&self, number: usize) -> bool {
        self.count > 1 && number < self.n_cut
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::{ModelClass, ModelClasses, PlanTable, Preset};

    fn folds(edits: &[&str], pass: u32, n_given: usize) -> Folds {
        let mut table = PlanTable::new(Preset::Best, ModelClasses::both(ModelClass::MINI));
        for edit in edits {
            table.set(edit).unwrap();
        }
        Folds::new(&table.plan().unwrap(), pass, n_given, 6)
    }

    /// Returns the sentences, of six, that the taggers of a part vote on, and those that they are not trained on.
    fn part(folds: &Folds, fold: usize) -> [Vec<usize>; 2] {
        [
            (0..6).filter(|number| folds.votes_on(*number, fold)).collect(),
            (0..6).filter(|number| folds.is_held_out(*number, fold)).collect(),
        ]
    }

    #[test]
    fn given_sentences_are_cut_and_all_taggers_vote_on_the_others() {
        for pass in [1, 2] {
            let two = folds(&["silver.folds=2"], pass, 4);
            assert_eq!(two.count, 2);
            assert_eq!(part(&two, 0), [vec![0, 2, 4, 5], vec![0, 2]]);
            assert_eq!(part(&two, 1), [vec![1, 3, 4, 5], vec![1, 3]]);
        }
        let one = folds(&["silver.folds=1"], 1, 4);
        assert_eq!((one.count, part(&one, 0)), (1, [(0..6).collect(), vec![]]));
        let none = folds(&["silver.folds=2"], 1, 0);
        assert_eq!((none.count, part(&none, 0)), (1, [(0..6).collect(), vec![]]));
    }

    #[test]
    fn folds_of_the_whole_text_come_first_and_each_part_has_a_tagger() {
        let edits = ["silver.folds=2", "self_training.panel=6", "self_training.folds=3"];
        let three = folds(&edits, 2, 4);
        assert_eq!((three.count, part(&three, 1)), (3, [vec![1, 4], vec![1, 4]]));
        assert_eq!(folds(&edits, 1, 4).count, 2);
        assert_eq!(folds(&["silver.folds=4", "self_training.panel=3"], 1, 4).count, 3);
    }
}
