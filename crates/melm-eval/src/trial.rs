//! Does it help on my data? Folds of the user's own gold, every method with the same number of updates.

use std::collections::BTreeMap;

use melm_text::Corpus;

use super::data::{Language, Languages, Split, subset};
use super::grid::{BASE, Block, Grid};
use super::statistics::{Mean, Verdict};
use super::table::{Rows, Split as Scored, Table};
use super::{Line, Paper, System};
use melm::augment::{DraftSummary, Method};
use melm::files::sha256;
use melm::random::Seed;
use melm::training::Budget;

/// What is tried.
#[derive(Clone, Debug)]
pub struct Trial {
    /// Parts that gold is cut into; each is scored by taggers of the others.
    pub n_folds: usize,
    /// Seeds of everything random after the cut.
    pub seeds: Vec<u64>,
    /// Updates of every tagger.
    pub budget: Budget,
    /// What is compared.
    pub methods: Vec<System>,
}

impl Trial {
    /// The folds of a corpus as languages of a grid, each held out once, and the grid. `dev` chooses the best epochs.
    ///
    /// `content` stands for the corpus; which sentences are in which fold depends on it alone.
    pub fn prepare(
        &self,
        (gold, content): (&Corpus, &str),
        dev: Option<(&Corpus, &str)>,
    ) -> (Grid, Languages) {
        let n = gold.sentences().len();
        let order = Seed(1).stream("folds").generator().permutation(n);
        let mut languages = Languages::new();
        for fold in 0..self.n_folds {
            let part = |is_held: bool| {
                let ranks = (0..n).filter(|rank| (rank % self.n_folds == fold) == is_held);
                let mut positions: Vec<_> = ranks.map(|rank| order[rank]).collect();
                positions.sort_unstable();
                let stands = format!("{content} {fold} {} {is_held}", self.n_folds);
                Split { corpus: subset(gold, &positions), fingerprint: sha256(stands.as_bytes()) }
            };
            let dev = dev.map(|(corpus, content)| Split {
                corpus: corpus.clone(),
                fingerprint: content.to_owned(),
            });
            let language = Language { train: part(false), dev, test: Some(part(true)) };
            languages.insert(format!("fold {}", fold + 1), language);
        }
        let grid = Grid {
            files: String::new(),
            data: None,
            evaluations: super::grid::evaluations(),
            transfer: BTreeMap::new(),
            grid: vec![Block {
                languages: languages.keys().cloned().collect(),
                sizes: vec![n],
                draws: vec![1],
                seeds: self.seeds.clone(),
                methods: self.methods.clone(),
                budgets: vec![self.budget],
                variants: Some(vec![BASE.to_owned()]),
            }],
            plan: toml::Table::from_iter([(
                "tagger".to_owned(),
                toml::Value::Table(toml::Table::from_iter([(
                    "budget".to_owned(),
                    toml::Value::String(self.budget.to_string()),
                )])),
            )]),
            variants: BTreeMap::new(),
            paper: Paper::new(),
        };
        (grid, languages)
    }

    /// What its lines say.
    pub fn result(&self, lines: &[Line]) -> TrialResult {
        let kept_none = |method: &&System| {
            let mut own = lines.iter().filter(|line| line.cell.method == **method).peekable();
            own.peek().is_some()
                && own.all(|line| line.drafts.as_ref().is_some_and(DraftSummary::all_rejected))
        };
        TrialResult {
            kept_none: self.methods.iter().filter(kept_none).copied().collect(),
            n_folds: self.n_folds,
            rows: Table::Mono.rows(lines, Scored::Test, &Paper::new()),
        }
    }
}

/// What a trial brought.
pub struct TrialResult {
    /// Methods of whose drafts the judge let none pass.
    kept_none: Vec<System>,
    n_folds: usize,
    rows: Rows,
}

/// A difference of a method to another over the folds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Difference {
    /// The mean.
    pub mean: f64,
    /// Half the width of its 95 % interval.
    pub margin: Option<f64>,
    /// What they say.
    pub verdict: Verdict,
}

impl TrialResult {
    fn row(&self, method: System) -> Option<&super::table::Row> {
        self.rows.rows.iter().find(|row| row.method == method)
    }

    fn difference(&self, mean: &Mean) -> Difference {
        let margin = mean.margin_of_folds(self.n_folds);
        Difference { mean: mean.mean, margin, verdict: mean.verdict_with(margin) }
    }

    /// The difference of a method to gold.
    pub fn to_gold(&self, method: System) -> Option<Difference> {
        Some(self.difference(self.row(method)?.to_gold.get("mean")?))
    }

    /// The difference of a method to label-wise.
    pub fn to_label_wise(&self, method: System) -> Option<Difference> {
        Some(self.difference(self.row(method)?.to_methods.get(Method::LabelWise.name())?))
    }

    /// The table as Markdown.
    pub fn markdown(&self) -> String {
        let mut text =
            "| method | F1 | to gold | to label-wise |\n| --- | --- | --- | --- |\n".to_owned();
        for row in &self.rows.rows {
            let f1 = row.f1.get("mean").map_or(String::new(), |mean| format!("{:.1}", mean.mean));
            let said = |found: Option<Difference>| found.map_or(String::new(), |d| d.to_string());
            let (gold, label_wise) = (self.to_gold(row.method), self.to_label_wise(row.method));
            text += &format!("| {} | {f1} | {} | {} |\n", row.method, said(gold), said(label_wise));
        }
        text
    }

    /// The verdict, in plain words.
    pub fn verdict(&self, method: System) -> String {
        let Some(to_gold) = self.to_gold(method) else {
            return "no verdict: the trial has no pairs to compare".to_owned();
        };
        if self.kept_none.contains(&method) {
            return format!(
                "no verdict: the judge kept no draft of {method}, so that it is gold alone. Train longer with `--updates`, \
                 or take all drafts with `--set filter.mode=off`"
            );
        }
        let label_wise = System::Method(Method::LabelWise);
        let simple = self.to_gold(label_wise).filter(|_| method != label_wise);
        let to_simple = self.to_label_wise(method);
        match to_gold.verdict {
            Verdict::Better => match (simple, to_simple) {
                (Some(simple), Some(to_simple))
                    if simple.verdict == Verdict::Better
                        && to_simple.verdict != Verdict::Better =>
                {
                    format!(
                        "augmentation helps on this data: {method} {to_gold}. label-wise does too ({simple}), needs no \
                         language model, and no difference between them was found: start with label-wise"
                    )
                }
                _ => format!("use {method}: it helps on this data, {to_gold}"),
            },
            Verdict::Worse => format!("do not use {method}: it hurts on this data, {to_gold}"),
            Verdict::NoDifference => format!(
                "do not use {method} yet: no difference to gold alone was found, {to_gold}. More folds, seeds or gold \
                 would narrow the interval"
            ),
            Verdict::Unknown => "no verdict: a single fold has no interval".to_owned(),
        }
    }
}

impl std::fmt::Display for Difference {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let words = self.verdict.words();
        match self.margin {
            None => write!(f, "{:+.1} ({words})", self.mean),
            Some(margin) => {
                let (low, high) = (self.mean - margin, self.mean + margin);
                write!(f, "{:+.1} [{low:+.1}, {high:+.1}] {words}", self.mean)
            }
        }
    }
}
