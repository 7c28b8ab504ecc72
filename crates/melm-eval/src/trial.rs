//! Trials: test whether augmentation helps on the user's own data. Gold is cut into folds, and every method has the
//! same number of updates.

use std::collections::BTreeMap;
use std::num::{NonZeroU16, NonZeroU64};

use melm::methods::Method;
use melm::random::Seed;
use melm::training::Budget;
use melm_nn::device::Device;
use melm_text::{Corpus, UnlabelledSentence, UnlabelledText};

use crate::data::subset;
use crate::grid::{BASE, Block, DEFAULT_EVALUATIONS, Grid};
use crate::statistics::{Mean, Verdict};
use crate::table::{Row, Rows, Split, Table};
use crate::{Dataset, Error, LanguageData, Languages, LedgerLine, PaperScores, System, TextChoice};

/// A comparison of methods on one corpus by cross-validation.
#[derive(Clone, Debug)]
pub struct Trial {
    n_folds: usize,
    seeds: Vec<u64>,
    budget: Budget,
    /// Gold, then the methods that are compared with it.
    methods: Vec<System>,
    /// Unlabelled text, if there is any.
    text: Option<UnlabelledText>,
}

/// The default size of a trial.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TrialDefaults {
    /// The number of seeds.
    pub seeds: u16,
    /// The number of updates of each tagger.
    pub updates: u64,
    /// The methods that are compared with gold.
    pub methods: &'static [Method],
}

impl TrialDefaults {
    /// The size for a GPU: 40 taggers with five folds.
    pub const GPU: Self = Self {
        seeds: 2,
        updates: 300,
        methods: &[Method::LabelWise, Method::Melm, Method::MelmBoth],
    };
    /// The size for a CPU: 15 taggers with five folds. With the embedded model and 100 sentences, it takes about 20
    /// minutes on two cores.
    pub const CPU: Self =
        Self { seeds: 1, updates: 100, methods: &[Method::LabelWise, Method::MelmBoth] };

    /// The size for a device.
    pub fn for_device(device: &Device) -> Self {
        match device {
            Device::Cpu(_) => Self::CPU,
            Device::Cuda(_) => Self::GPU,
        }
    }
}

/// A system of a trial: a method, with or without the unlabelled text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TrialSystem {
    /// The method.
    pub method: System,
    /// The unlabelled text.
    pub text: TextChoice,
}

impl TrialSystem {
    /// A method without unlabelled text.
    pub fn without_text(method: System) -> Self {
        Self { method, text: TextChoice::default() }
    }
}

impl std::fmt::Display for TrialSystem {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let text = if self.text.is_none() { "" } else { " + text" };
        write!(f, "{}{text}", self.method)
    }
}

impl Trial {
    /// Describes a trial that compares gold with each of `methods`.
    ///
    /// Gold is cut into `n_folds` folds. Each fold is scored by taggers trained on the other folds, with `n_seeds`
    /// seeds and `updates` updates each. Fails if there are fewer than two folds, no method except gold, or a method
    /// that mixes languages.
    pub fn new(
        n_folds: usize,
        n_seeds: NonZeroU16,
        updates: NonZeroU64,
        methods: &[System],
    ) -> Result<Self, Error> {
        let others = methods.iter().copied().filter(|method| *method != System::GOLD);
        let methods: Vec<_> = std::iter::once(System::GOLD).chain(others).collect();
        if n_folds < 2 {
            let message = format!("a trial needs two folds or more, not {n_folds}");
            return Err(Error::Trial { message, hint: "pass `--folds 2` or more" });
        }
        if methods.len() == 1 {
            let message = "there is no method to compare gold with".to_owned();
            let hint = "name one, as in `--methods label-wise,melm-both`";
            return Err(Error::Trial { message, hint });
        }
        let mut systems = methods.iter();
        if let Some(method) = systems.find(|system| system.drafts().is_some_and(Method::mixes)) {
            let message = format!("{method} mixes languages, and a trial has one");
            return Err(Error::Trial { message, hint: "compare it with `melm reproduce multi`" });
        }
        let seeds = (1..=u64::from(n_seeds.get())).collect();
        Ok(Self { n_folds, seeds, budget: Budget::Updates(updates), methods, text: None })
    }

    /// Also compares gold and the last method with unlabelled text, which should contain no sentence of gold or of the
    /// dev set. Fails if the text has no sentence.
    pub fn with_text(self, text: UnlabelledText) -> Result<Self, Error> {
        if text.sentences().is_empty() {
            let message = "no sentence of the unlabelled text is left".to_owned();
            let hint = "use text that is not in TRAIN, the dev set or a held-out file";
            return Err(Error::Trial { message, hint });
        }
        Ok(Self { text: Some(text), ..self })
    }

    /// The number of folds.
    pub fn n_folds(&self) -> usize {
        self.n_folds
    }

    /// The number of seeds.
    pub fn n_seeds(&self) -> usize {
        self.seeds.len()
    }

    /// The budget of every tagger.
    pub fn budget(&self) -> Budget {
        self.budget
    }

    /// The systems that are compared with gold: the methods and, with unlabelled text, gold and the last method with
    /// text. The verdict is about the last of them.
    pub fn systems(&self) -> Vec<TrialSystem> {
        let methods = self.methods[1..].iter().copied().map(TrialSystem::without_text);
        let with_text = |method| TrialSystem { method, text: self.text_choice() };
        let more = self.text.iter().flat_map(|_| self.methods_with_text()).map(with_text);
        methods.chain(more).collect()
    }

    /// The methods that are combined with unlabelled text: gold and the last one.
    fn methods_with_text(&self) -> Vec<System> {
        vec![System::GOLD, *self.methods.last().expect("a trial has a method")]
    }

    fn text_choice(&self) -> TextChoice {
        let size = self.text.as_ref().map_or(0, |text| text.sentences().len());
        TextChoice { size, languages: Vec::new() }
    }

    /// Cuts gold into folds. Returns a grid and its data. The grid treats each fold as a language: its test set is
    /// the fold, and its training set is the other folds.
    ///
    /// The best epochs are chosen on `dev`. The folds depend only on the sentences of `gold`. Fails if there are fewer
    /// than two sentences for each fold.
    pub fn prepare(&self, gold: &Corpus, dev: Option<&Corpus>) -> Result<(Grid, Languages), Error> {
        let (n, n_folds) = (gold.sentences().len(), self.n_folds);
        if n < 2 * n_folds {
            let message = format!("too few sentences for {n_folds} folds: {n}");
            let hint = "a fold needs two sentences or more: use fewer `--folds`, or more gold";
            return Err(Error::Trial { message, hint });
        }
        let order = Seed(1).stream("folds").generator().permutation(n);
        let mut languages = Languages::new();
        for fold in 0..n_folds {
            let part = |is_held_out: bool| {
                let ranks = (0..n).filter(|rank| (rank % n_folds == fold) == is_held_out);
                let mut positions: Vec<_> = ranks.map(|rank| order[rank]).collect();
                positions.sort_unstable();
                Dataset::new(subset(gold, &positions))
            };
            let dev = dev.map(|corpus| Dataset::new(corpus.clone()));
            let text = self.text.as_ref().map(|text| {
                let sentences = text.sentences().iter().map(UnlabelledSentence::to_sentence);
                Dataset::new(gold.with_sentences(sentences))
            });
            let data = LanguageData { train: part(false), dev, text, test: Some(part(true)) };
            languages.insert(format!("fold {}", fold + 1), data);
        }
        Ok((self.grid(n, &languages), languages))
    }

    /// Returns the grid of all folds, seeds and methods. The judge has the same budget as the taggers.
    fn grid(&self, size: usize, languages: &Languages) -> Grid {
        let budget = toml::Value::String(self.budget.to_string());
        let tagger = toml::Table::from_iter([("budget".to_owned(), budget)]);
        let without = (self.methods.clone(), TextChoice::default());
        let with = self.text.as_ref().map(|_| (self.methods_with_text(), self.text_choice()));
        let blocks = std::iter::once(without).chain(with).map(|(methods, text)| Block {
            languages: languages.keys().cloned().collect(),
            sizes: vec![size],
            draws: vec![1],
            seeds: self.seeds.clone(),
            methods,
            texts: vec![text],
            budgets: vec![self.budget],
            variants: Some(vec![BASE.to_owned()]),
        });
        Grid {
            name: "the trial".to_owned(),
            files: String::new(),
            data: None,
            evaluations: DEFAULT_EVALUATIONS,
            transfer: BTreeMap::new(),
            grid: blocks.collect(),
            plan: toml::Table::from_iter([("tagger".to_owned(), toml::Value::Table(tagger))]),
            variants: BTreeMap::new(),
            paper: PaperScores::new(),
        }
    }

    /// Computes the result from the lines of a ledger.
    pub fn result(&self, lines: &[LedgerLine]) -> TrialResult {
        TrialResult {
            n_folds: self.n_folds,
            rows: Table::Mono.rows(lines, Split::Test, &PaperScores::new()),
        }
    }
}

/// The result of a trial.
pub struct TrialResult {
    n_folds: usize,
    rows: Rows,
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
