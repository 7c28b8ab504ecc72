//! The runner of an experiment: a grid with its data, plans and models.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use melm::codemix::MentionVectors;
use melm::files::{Fingerprint, refuse_links, write_shared};
use melm::methods::{Method, PretrainedSeq2Seq};
use melm::models::Pretrained;
use melm::plan::Plan;
use melm::training::Budget;
use melm_text::{Corpus, KnownSentences, SentenceRole};

use crate::data::{DrawnText, concatenate, draw_text, joined_training_sets};
use crate::key::{CellKey, DataKey, Fingerprints, NamesKey, TextKey, TextKeys};
use crate::picking::Chains;
use crate::plans::plan_name;
use crate::{Cell, Dataset, Error, Grid, Languages, LedgerLine, Plans};

/// Returns the time in seconds since any fixed moment.
pub type Clock = Box<dyn Fn() -> f64 + Send + Sync>;

/// The models and vectors of an experiment.
pub struct ExperimentModels {
    /// The masked language model, if a method reads one.
    pub masked_lm: Option<Pretrained>,
    /// The encoder of the tagger.
    pub tagger: Pretrained,
    /// The encoder-decoder that the method `mulda` fine-tunes. Without one, it trains a new model.
    pub seq2seq: Option<PretrainedSeq2Seq>,
    /// Vectors for the words of all mentions, if a method compares mentions.
    pub vectors: Option<MentionVectors>,
}

/// Runs the cells of a grid, and the analyses that are not tables of scores.
pub struct ExperimentRunner {
    pub(crate) grid: Grid,
    pub(crate) languages: Languages,
    pub(crate) plans: Plans,
    pub(crate) models: ExperimentModels,
    pub(crate) fingerprints: Fingerprints,
    pub(crate) tagger_folder: Option<PathBuf>,
    /// The sentences that were picked so far.
    pub(crate) chains: Chains,
    clock: Clock,
}

impl ExperimentRunner {
    /// Creates a runner. `arithmetic` is that of the devices that will run the cells
    /// ([`melm_nn::device::Device::arithmetic`]).
    ///
    /// Taggers are not scored on languages without a test set. Fails if the files of a model cannot be read, or if a
    /// method fills masks and the masked language model has no masked-LM head.
    pub fn new(
        grid: Grid,
        languages: Languages,
        plans: Plans,
        models: ExperimentModels,
        arithmetic: &str,
    ) -> Result<Self, Error> {
        plans.check_head(&grid, models.masked_lm.as_ref())?;
        let mut vectors = Fingerprint::default();
        if let Some(read) = &models.vectors {
            read.add_to(&joined_training_sets(&languages), &mut vectors);
        }
        let masked_lm = models.masked_lm.as_ref().map(Pretrained::fingerprint).transpose()?;
        let seq2seq = models.seq2seq.as_ref().map(PretrainedSeq2Seq::fingerprint).transpose()?;
        let fingerprints = Fingerprints {
            seq2seq: seq2seq.unwrap_or_default(),
            arithmetic: arithmetic.to_owned(),
            masked_lm: masked_lm.unwrap_or_default(),
            tagger: models.tagger.fingerprint()?,
            vectors: vectors.finish(),
        };
        let (tagger_folder, clock): (_, Clock) = (None, Box::new(|| 0.0));
        let chains = Chains::default();
        Ok(Self { grid, languages, plans, models, fingerprints, tagger_folder, chains, clock })
    }

    /// Sets the clock that measures the times in ledgers. Without a clock, all times are 0.
    #[must_use]
    pub fn with_clock(self, clock: Clock) -> Self {
        Self { clock, ..self }
    }

    /// Saves every tagger, each in its own folder below this one.
    #[must_use]
    pub fn with_tagger_folder(self, folder: PathBuf) -> Self {
        Self { tagger_folder: Some(folder), ..self }
    }

    /// The grid.
    pub fn grid(&self) -> &Grid {
        &self.grid
    }

    /// The plans of the variants.
    pub fn plans(&self) -> &Plans {
        &self.plans
    }

    /// The models and vectors.
    pub fn models(&self) -> &ExperimentModels {
        &self.models
    }

    /// The number of languages with a test set.
    pub fn n_test_sets(&self) -> usize {
        self.languages.values().filter(|language| language.test.is_some()).count()
    }

    /// Returns the key of a cell: the digest of everything that affects its result.
    pub fn key(&self, cell: &Cell) -> String {
        let known = cell.languages().filter_map(|name| Some((name, self.languages.get(name)?)));
        let data = known.map(|(language, data)| DataKey {
            dev: data.dev.as_ref().map(Dataset::fingerprint),
            language,
            train: data.train.fingerprint(),
        });
        let plan = &self.keyed_plan(cell);
        let evaluations = self.grid.evaluations.get();
        let text = cell.text_languages().filter_map(|language| {
            let data = self.languages.get(language)?;
            let source = data.text.as_ref().unwrap_or(&data.train).fingerprint();
            let (size, noise_percent) = (cell.text.size, cell.text.noise_percent);
            Some(TextKey { language, noise_percent, size, source })
        });
        let (data, text): (_, Vec<_>) = (data.collect(), text.collect());
        let held_out = if text.is_empty() { Vec::new() } else { self.held_out() };
        let text = TextKeys { held_out, text };
        let key = CellKey::new(cell, plan, evaluations, data, text, &self.fingerprints);
        key.with_picking(self.grid.picking).with_names(self.names_key(cell, plan)).digest()
    }

    /// Returns the plan of a cell as its key contains it. If a budget is in epochs, the interval between evaluations is that
    /// of the grid. Otherwise it is not read, and the key contains the value of the plan, as it always did.
    fn keyed_plan(&self, cell: &Cell) -> Plan {
        let mut plan = self.plans.variant(&cell.variant).clone();
        let judge = cell.method.drafts().map(|_| plan.tagger.training.budget);
        let mut budgets = judge.into_iter().chain([cell.budget]);
        if let Some(in_epochs) = budgets.find(|budget| matches!(budget, Budget::Epochs(_))) {
            self.grid.set_evaluations(&mut plan.tagger, in_epochs);
        }
        plan
    }

    /// The lists of names that a cell uses, if there are any.
    fn names_key(&self, cell: &Cell, plan: &Plan) -> Option<NamesKey> {
        let share = plan.names.share.value();
        let has_names = cell.method.drafts().is_some_and(Method::has_names) && share > 0.0;
        let languages = cell.languages().filter_map(|name| self.languages.get(name));
        let lists: Vec<_> = languages.flat_map(|one| &one.names).collect();
        if !has_names || lists.is_empty() {
            return None;
        }
        let mut fingerprint = Fingerprint::default();
        for list in lists {
            list.add_to(&mut fingerprint);
        }
        Some(NamesKey { share, source: fingerprint.finish() })
    }

    /// The fingerprints of all sets whose sentences are left out of texts.
    fn held_out(&self) -> Vec<&str> {
        let sets = self.languages.values().flat_map(|one| one.dev.iter().chain(&one.test));
        sets.map(Dataset::fingerprint).collect()
    }

    /// Returns true if one of the lines has the key of the cell and scores on its test sets. The line may belong to
    /// another cell with the same settings and data.
    pub fn is_known(&self, cell: &Cell, lines: &[LedgerLine]) -> bool {
        let (key, tests) = (self.key(cell), self.test_languages(cell));
        lines.iter().any(|line| line.has(&key, &tests))
    }

    /// Returns only the lines of these cells that were computed with the same settings, data and device.
    pub fn current_lines(&self, lines: Vec<LedgerLine>, cells: &[Cell]) -> Vec<LedgerLine> {
        let is_current =
            |line: &LedgerLine| cells.contains(&line.cell) && line.key == self.key(&line.cell);
        lines.into_iter().filter(is_current).collect()
    }

    /// Fails if a cell compares mentions by vectors but the experiment has no vectors.
    pub fn check_vectors(&self, cells: &[Cell]) -> Result<(), Error> {
        let needs_vectors = |cell: &&Cell| cell.method.drafts().is_some_and(Method::has_vectors);
        match cells.iter().find(needs_vectors) {
            Some(cell) if self.models.vectors.is_none() => {
                let language = cell.languages().next().unwrap_or_default().to_owned();
                Err(melm::Error::NoVectorsOf { language }.into())
            }
            _ => Ok(()),
        }
    }

    /// Writes the plan of each cell into a folder, under the name that its ledger line gives, so that the cell can be
    /// run again. Fails if the folder is a link, or has one.
    pub fn write_plans(&self, cells: &[Cell], folder: &Path) -> Result<(), Error> {
        refuse_links(folder)?;
        std::fs::create_dir_all(folder)
            .map_err(|source| melm::Error::Write { path: folder.to_path_buf(), source })?;
        for cell in cells {
            let plan = self.plans.cell(cell);
            let path = folder.join(format!("{}.toml", plan_name(&plan)));
            if !path.exists() {
                write_shared(&path, plan.to_toml().as_bytes())?;
            }
        }
        Ok(())
    }

    /// The languages that a cell is scored on and that have a test set.
    pub(crate) fn test_languages<'c>(&'c self, cell: &'c Cell) -> Vec<&'c str> {
        let has_test = |name: &&str| self.languages.get(*name).is_some_and(|l| l.test.is_some());
        self.grid.test_languages(cell).filter(has_test).collect()
    }

    /// The test sets that a cell is scored on, by language.
    pub(crate) fn test_sets<'c>(&'c self, cell: &'c Cell) -> Vec<(&'c str, &'c Dataset)> {
        let names = self.test_languages(cell).into_iter();
        names.filter_map(|name| Some((name, self.languages[name].test.as_ref()?))).collect()
    }

    /// Draws the text of a cell: sentences of all its text languages. Leaves out sentences of `gold`, which the cell
    /// learns from, and of all dev and test sets of the experiment.
    pub(crate) fn draw_text(&self, cell: &Cell, gold: &Corpus) -> Result<DrawnText, Error> {
        let mut known = KnownSentences::default().with_corpus(SentenceRole::Gold, gold);
        for language in self.languages.values() {
            if let Some(dev) = &language.dev {
                known = known.with_corpus(SentenceRole::Dev, dev.corpus());
            }
            if let Some(test) = &language.test {
                known = known.with_corpus(SentenceRole::HeldOut, test.corpus());
            }
        }
        let parts: Vec<DrawnText> = cell
            .text_languages()
            .map(|name| draw_text(&self.languages[name], &known, cell.text.size, cell.draw))
            .collect();
        let corpora: Vec<Corpus> = parts.iter().map(|part| part.corpus.clone()).collect();
        let n_left_out = parts.iter().map(|part| part.n_left_out).sum();
        Ok(DrawnText { corpus: concatenate(&corpora)?, n_left_out })
    }

    /// The fingerprints of the data of a cell, by language: train, dev, and test if it is scored.
    pub(crate) fn data_fingerprints(&self, cell: &Cell) -> BTreeMap<String, Vec<String>> {
        let mut all: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for name in cell.languages() {
            let language = &self.languages[name];
            let both = std::iter::once(&language.train).chain(&language.dev);
            let fingerprints = both.map(|dataset| dataset.fingerprint().to_owned());
            all.insert(name.to_owned(), fingerprints.collect());
        }
        for name in cell.text_languages() {
            let language = &self.languages[name];
            let source = language.text.as_ref().unwrap_or(&language.train);
            let own = all.entry(format!("text of {name}")).or_default();
            own.push(source.fingerprint().to_owned());
        }
        for name in self.test_languages(cell) {
            let test = self.languages[name].test.as_ref();
            let fingerprint = test.map(|test| test.fingerprint().to_owned());
            all.entry(name.to_owned()).or_default().extend(fingerprint);
        }
        all
    }

    pub(crate) fn now(&self) -> f64 {
        (self.clock)()
    }
}
