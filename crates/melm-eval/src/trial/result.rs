//! The result of a trial: differences between methods, and a verdict.

use melm::methods::Method;
use serde_json::{Map, Value, json};

use super::TrialSystem;
use crate::System;
use crate::statistics::{Mean, Verdict};
use crate::table::{Row, Rows};

/// The result of a trial.
pub struct TrialResult {
    pub(super) n_folds: usize,
    pub(super) rows: Rows,
}

/// The difference in F1 between two methods, over all folds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Difference {
    /// The mean difference in percentage points.
    pub mean: f64,
    /// Half the width of the 95 % interval of the mean; `None` for a single pair.
    pub margin: Option<f64>,
    /// The conclusion from the interval.
    pub verdict: Verdict,
}

impl TrialResult {
    fn row(&self, system: &TrialSystem) -> Option<&Row> {
        let is_own = |row: &&Row| row.method == system.method && row.text == system.text;
        self.rows.rows.iter().find(is_own)
    }

    fn difference(&self, mean: &Mean) -> Difference {
        let margin = mean.margin_of_folds(self.n_folds);
        Difference { mean: mean.mean, margin, verdict: mean.verdict_with(margin) }
    }

    /// Returns the difference between a system and gold alone.
    pub fn difference_to_gold(&self, system: &TrialSystem) -> Option<Difference> {
        Some(self.difference(self.row(system)?.to_gold.get("mean")?))
    }

    /// Returns the difference between a system and label-wise with the same text.
    pub fn difference_to_label_wise(&self, system: &TrialSystem) -> Option<Difference> {
        Some(self.difference(self.row(system)?.to_methods.get(Method::LabelWise.name())?))
    }

    /// The differences of `systems` to gold, and the verdict on the last one: the content of `melm trial --json`.
    pub fn to_json(&self, systems: &[TrialSystem]) -> Value {
        let mut record = Map::new();
        for system in systems {
            let difference = self.difference_to_gold(system).map(|found| {
                json!({"difference": found.mean, "margin": found.margin, "verdict": found.verdict.words()})
            });
            record.insert(system.to_string(), json!(difference));
        }
        if let Some(last) = systems.last() {
            record.insert("verdict".to_owned(), self.verdict(last).into());
        }
        record.into()
    }

    /// The table as Markdown.
    pub fn markdown(&self) -> String {
        let mut text =
            "| method | F1 | to gold | to label-wise |\n| --- | --- | --- | --- |\n".to_owned();
        for row in &self.rows.rows {
            let system = TrialSystem { method: row.method, text: row.text.clone() };
            let note = if row.kept_none { " (no draft kept)" } else { "" };
            let f1 = row.f1.get("mean").map_or(String::new(), |mean| format!("{:.1}", mean.mean));
            let text_of =
                |found: Option<Difference>| found.map_or(String::new(), |d| d.to_string());
            let (gold, label_wise) =
                (self.difference_to_gold(&system), self.difference_to_label_wise(&system));
            let (gold, label_wise) = (text_of(gold), text_of(label_wise));
            text += &format!("| {system}{note} | {f1} | {gold} | {label_wise} |\n");
        }
        text
    }

    /// Returns a verdict that recommends the text without drafts, if drafts bring nothing to it. `to_gold` is the
    /// difference of the system to gold.
    fn text_alone_verdict(&self, system: &TrialSystem, to_gold: Difference) -> Option<String> {
        let to_text = self.difference(self.row(system)?.to_text.as_ref()?);
        let text = TrialSystem { method: System::GOLD, text: system.text.clone() };
        let text_to_gold = self.difference_to_gold(&text)?;
        let is_enough = to_gold.verdict == Verdict::Better
            && text_to_gold.verdict == Verdict::Better
            && to_text.verdict != Verdict::Better;
        is_enough.then(|| {
            format!(
                "unlabelled text helps on this data: {system} {to_gold}. {text} does too ({text_to_gold}) and needs no drafts. \
                 Drafts are not shown to add to it ({to_text}): start with `--method gold --unlabelled`"
            )
        })
    }

    /// Returns one or two sentences that say whether to use a system.
    pub fn verdict(&self, system: &TrialSystem) -> String {
        let method = system;
        let Some(to_gold) = self.difference_to_gold(system) else {
            return "no verdict: the trial has no pairs to compare".to_owned();
        };
        if system.text.is_none() && self.row(system).is_some_and(|row| row.kept_none) {
            return format!(
                "no verdict: the judge kept no draft of {method}, so its training sets are gold alone. Train longer with `--updates`, \
                 or keep all drafts with `--set filter.mode=off`"
            );
        }
        if let Some(verdict) = self.text_alone_verdict(system, to_gold) {
            return verdict;
        }
        let label_wise = TrialSystem::without_text(System::Method(Method::LabelWise));
        let simple = self.difference_to_gold(&label_wise).filter(|_| *system != label_wise);
        let to_simple = self.difference_to_label_wise(system);
        match to_gold.verdict {
            Verdict::Better => match (simple, to_simple) {
                (Some(simple), Some(to_simple))
                    if simple.verdict == Verdict::Better
                        && to_simple.verdict != Verdict::Better =>
                {
                    format!(
                        "augmentation helps on this data: {method} {to_gold}. label-wise does too ({simple}) and needs no \
                         language model. {method} is not shown to be better ({to_simple}): start with label-wise"
                    )
                }
                _ => format!("use {method}: it helps on this data, {to_gold}"),
            },
            Verdict::Worse => format!("do not use {method}: it hurts on this data, {to_gold}"),
            Verdict::NoDifference => {
                format!(
                    "do not use {method}: it makes no difference on this data, {}",
                    to_gold.interval()
                )
            }
            Verdict::Inconclusive => format!(
                "no verdict on {method}: the trial is inconclusive. The difference from gold alone is {}, so it may help or \
                 hurt. More folds, seeds or gold would narrow the interval",
                to_gold.interval()
            ),
            Verdict::TooFewPairs => {
                format!(
                    "no verdict on {method}: {} folds are too few. Use three or more",
                    self.n_folds
                )
            }
        }
    }
}

impl Difference {
    /// Returns the mean and, if there is one, its interval. Leaves out the verdict.
    fn interval(&self) -> String {
        match self.margin {
            None => format!("{:+.1}", self.mean),
            Some(margin) => {
                let (low, high) = (self.mean - margin, self.mean + margin);
                format!("{:+.1} [{low:+.1}, {high:+.1}]", self.mean)
            }
        }
    }
}

impl std::fmt::Display for Difference {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (interval, words) = (self.interval(), self.verdict.words());
        match self.margin {
            None => write!(f, "{interval} ({words})"),
            Some(_) => write!(f, "{interval} {words}"),
        }
    }
}
