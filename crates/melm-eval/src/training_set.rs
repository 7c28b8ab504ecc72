//! The training set of a cell.

use melm::augment::DraftSummary;
use melm::plan::Plan;
use melm_text::Corpus;

use crate::{Cell, PickResult, System, TextChoice, TextResult};

/// The training set of a system. Cells that differ only in the budget of the tagger share it.
pub(crate) struct TrainingSet {
    pub(crate) plan: Plan,
    pub(crate) method: System,
    pub(crate) text: TextChoice,
    pub(crate) corpus: Corpus,
    pub(crate) summary: Option<DraftSummary>,
    pub(crate) text_result: Option<TextResult>,
    pub(crate) picked: Option<PickResult>,
    pub(crate) seconds: f64,
}

impl TrainingSet {
    /// A training set without drafts, text and picked sentences.
    pub(crate) fn new(plan: &Plan, method: System, corpus: Corpus) -> Self {
        Self {
            plan: plan.clone(),
            method,
            text: TextChoice::default(),
            corpus,
            summary: None,
            text_result: None,
            picked: None,
            seconds: 0.0,
        }
    }

    /// Returns true if this is the training set of a cell. The settings of self-training matter only with text or picking.
    pub(crate) fn is_for(&self, cell: &Cell, plan: &Plan) -> bool {
        let mut other = plan.clone();
        if cell.text.is_none() && cell.method != System::Picked {
            other.self_training = self.plan.self_training.clone();
        }
        self.method == cell.method && self.text == cell.text && self.plan == other
    }
}
