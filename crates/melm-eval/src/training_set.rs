//! The training set of a cell.

use melm::augment::DraftSummary;
use melm::plan::Plan;
use melm_text::Corpus;

use crate::{Cell, System, TextChoice, TextResult};

/// The training set of a system. Cells that differ only in the budget of the tagger share it.
pub(crate) struct TrainingSet {
    pub(crate) plan: Plan,
    pub(crate) method: System,
    pub(crate) text: TextChoice,
    pub(crate) corpus: Corpus,
    pub(crate) summary: Option<DraftSummary>,
    pub(crate) text_result: Option<TextResult>,
    pub(crate) seconds: f64,
}

impl TrainingSet {
    /// Returns true if this is the training set of a cell. The settings of self-training matter only with text.
    pub(crate) fn is_for(&self, cell: &Cell, plan: &Plan) -> bool {
        let mut other = plan.clone();
        if cell.text.is_none() {
            other.self_training = self.plan.self_training.clone();
        }
        self.method == cell.method && self.text == cell.text && self.plan == other
    }
}
