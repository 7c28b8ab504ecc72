//! Trials: test whether augmentation helps on the user's own data. Gold is cut into folds, and every method has the
//! same number of updates.

mod result;

use std::collections::BTreeMap;
use std::num::{NonZeroU16, NonZeroU64};

use melm::methods::Method;
use melm::random::Seed;
use melm::training::Budget;
use melm_nn::device::Device;
use melm_text::{Corpus, KnownSentences, LeftOut, UnlabelledSentence, UnlabelledText, count};

pub use result::{Difference, TrialResult};

use crate::data::subset;
use crate::grid::{BASE, Block, DEFAULT_EVALUATIONS, Grid};
use crate::table::{Split, Table};
use crate::{
    Dataset, Error, LanguageData, Languages, LedgerLine, PaperScores, Picking, System, TextChoice,
};

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
    /// The numbers of sentences that were left out of the text.
    left_out: LeftOut,
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
        let (budget, left_out) = (Budget::Updates(updates), LeftOut::default());
        Ok(Self { n_folds, seeds, budget, methods, text: None, left_out })
    }

    /// Also compares gold and the last method with unlabelled text. Sentences of `known` and repeated sentences are left
    /// out of the text. Fails if no sentence is left.
    pub fn with_text(self, text: &UnlabelledText, known: &KnownSentences) -> Result<Self, Error> {
        let (text, left_out) = text.without(known);
        if text.sentences().is_empty() {
            let message = "no sentence of the unlabelled text is left".to_owned();
            let hint = "use text that is not in TRAIN, the dev set or a held-out file";
            return Err(Error::Trial { message, hint });
        }
        Ok(Self { text: Some(text), left_out, ..self })
    }

    /// Returns a line about the size of the unlabelled text, if there is any.
    pub fn text_note(&self) -> Option<String> {
        let text = self.text.as_ref()?;
        Some(format!(
            "{} of unlabelled text; {} left out, because they are in the training set, the dev set or a held-out file, or \
             repeat another",
            count(text.sentences().len(), "sentence"),
            self.left_out.total()
        ))
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
        TextChoice { size, ..TextChoice::default() }
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
            let data = LanguageData {
                train: part(false),
                dev,
                text,
                test: Some(part(true)),
                names: Vec::new(),
            };
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
            evaluate_every: None,
            names: None,
            transfer: BTreeMap::new(),
            picking: Picking::default(),
            grid: blocks.collect(),
            plan: toml::Table::from_iter([("tagger".to_owned(), toml::Value::Table(tagger))]),
            variants: BTreeMap::new(),
            paper: PaperScores::new(),
            sentences: Vec::new(),
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
