//! Runs cells with the same gold and seed. These cells share a judge. Cells that differ only in the budget of the
//! tagger also share the training set.

use std::collections::BTreeMap;
use std::num::NonZeroU64;

use melm::augment::{Backbones, DraftSummary, Gold, augment};
use melm::files::sha256;
use melm::methods::Method;
use melm::plan::Plan;
use melm::random::Seed;
use melm::stage::{Control, Event, Run};
use melm::tagger::{TaggerModel, TaggerSettings, TrainedTagger};
use melm::training::{Budget, CheckpointChoice, EvaluationInterval};
use melm_nn::device::Device;
use melm_text::Corpus;

use crate::data::{Draw, concatenate};
use crate::ledger::{F1, LedgerLine, Seconds};
use crate::swap::{Added, add_swapped};
use crate::{Cell, Error, ExperimentRunner, System};

/// Called with the cell that is being run, the name of a stage and an event of the stage.
pub(crate) type OnEvent<'a> = &'a mut dyn FnMut(&Cell, &'static str, Event<'_>) -> Control;

/// Runs cells with the same gold. Keeps the last judge and the last training set in memory for the next cell. Writes no
/// files.
pub(crate) struct CellGroup<'a> {
    runner: &'a ExperimentRunner,
    device: &'a Device,
    gold: Draw,
    judge: Option<(TaggerSettings, TrainedTagger)>,
    training_set: Option<TrainingSet>,
}

/// The training set of a system. Cells that differ only in the budget of the tagger share it.
struct TrainingSet {
    plan: Plan,
    method: System,
    corpus: Corpus,
    summary: Option<DraftSummary>,
    seconds: f64,
}

impl<'a> CellGroup<'a> {
    /// Draws the gold of a cell.
    pub(crate) fn new(
        runner: &'a ExperimentRunner,
        cell: &Cell,
        device: &'a Device,
    ) -> Result<Self, Error> {
        let languages = cell.languages().map(|name| (name, &runner.languages[name]));
        let gold = Draw::new(languages, cell.size, cell.draw)?;
        Ok(Self { runner, device, gold, judge: None, training_set: None })
    }

    /// Trains and scores the tagger of a cell.
    pub(crate) fn run(&mut self, cell: &Cell, on_event: OnEvent<'_>) -> Result<LedgerLine, Error> {
        let plan = self.runner.plans.cell(cell);
        let mut observer = |stage: &'static str, event: Event<'_>| on_event(cell, stage, event);
        let run = &mut Run { seed: Seed(cell.seed), folder: None, observer: &mut observer };
        self.make_training_set(cell, &plan, run)?;
        let made = self.training_set.as_ref().expect("it was just made");
        let settings = self.tagger_settings(&plan, cell.budget);
        let started = self.runner.now();
        let judge = self
            .judge
            .as_ref()
            .filter(|(known, _)| cell.method == System::GOLD && *known == settings);
        let own;
        let trained = if let Some((_, trained)) = judge {
            trained
        } else {
            own = self.train(&made.corpus, &settings, run)?;
            &own
        };
        let train_seconds = self.runner.now() - started;
        let line = self.line(cell, &plan, made, trained, train_seconds)?;
        if let Some(folder) = &self.runner.tagger_folder {
            trained.tagger.save(&folder.join(&line.key[..16]))?;
        }
        Ok(line)
    }

    /// The train and dev set of the draw.
    pub(crate) fn into_gold(self) -> (Corpus, Option<Corpus>) {
        (self.gold.train, self.gold.dev)
    }

    /// Returns the training set of a cell, and the gold it was made from.
    pub(crate) fn training_set(
        &mut self,
        cell: &Cell,
        on_event: OnEvent<'_>,
    ) -> Result<(&Corpus, &Corpus), Error> {
        let plan = self.runner.plans.cell(cell);
        let mut observer = |stage: &'static str, event: Event<'_>| on_event(cell, stage, event);
        let run = &mut Run { seed: Seed(cell.seed), folder: None, observer: &mut observer };
        self.make_training_set(cell, &plan, run)?;
        Ok((&self.training_set.as_ref().expect("it was just made").corpus, &self.gold.train))
    }

    fn train(
        &self,
        train: &Corpus,
        settings: &TaggerSettings,
        run: &mut Run<'_>,
    ) -> Result<TrainedTagger, Error> {
        let (dev, stage) = (self.gold.dev.as_ref(), &mut run.stage("tagger"));
        let encoder = &self.runner.models.tagger;
        Ok(TaggerModel::train(encoder, train, dev, settings, self.device, stage)?)
    }

    /// Returns the settings of a tagger with this budget. If the budget is in updates, the number of evaluations does
    /// not depend on the size of the training set.
    fn tagger_settings(&self, plan: &Plan, budget: Budget) -> TaggerSettings {
        let mut settings = plan.tagger.clone();
        settings.training.budget = budget;
        if let Budget::Updates(updates) = budget {
            let between = NonZeroU64::new(updates.get() / self.runner.grid.evaluations);
            settings.training.evaluate_every =
                EvaluationInterval::updates(between.unwrap_or(NonZeroU64::MIN));
        }
        settings
    }

    /// Makes the training set of a cell, unless the previous cell used the same one.
    fn make_training_set(
        &mut self,
        cell: &Cell,
        plan: &Plan,
        run: &mut Run<'_>,
    ) -> Result<(), Error> {
        // The tagger that a gold cell trains with the budget of the plan is also the judge of the other cells.
        let is_judge = cell.method == System::GOLD && cell.budget == plan.tagger.training.budget;
        if plan.has_judge() || is_judge {
            self.make_judge(plan, run)?;
        }
        let is_same = |made: &TrainingSet| made.plan == *plan && made.method == cell.method;
        if self.training_set.as_ref().is_some_and(is_same) {
            return Ok(());
        }
        let started = self.runner.now();
        let (corpus, summary) = self.compose(cell.method, plan, run)?;
        let seconds = self.runner.now() - started;
        let (plan, method) = (plan.clone(), cell.method);
        self.training_set = Some(TrainingSet { plan, method, corpus, summary, seconds });
        Ok(())
    }

    /// Makes the training set of a system. Returns it with the counts of its drafts, if it has any.
    fn compose(
        &self,
        system: System,
        plan: &Plan,
        run: &mut Run<'_>,
    ) -> Result<(Corpus, Option<DraftSummary>), Error> {
        let (gold, extra) = (&self.gold.train, &self.gold.extra);
        let swap =
            |added: Added, run: &Run<'_>| add_swapped(gold, extra, added, run.seed.stream("extra"));
        Ok(match system {
            System::Method(Method::Gold) => (gold.clone(), None),
            System::GoldDuplicated => {
                let times = 1 + plan.generate.rounds.get() as usize;
                (concatenate(&vec![gold.clone(); times])?, None)
            }
            System::AddEntity => (swap(Added::Entities, run)?, None),
            System::AddContext => (swap(Added::Contexts, run)?, None),
            System::Method(
                Method::LabelWise
                | Method::Lwtr
                | Method::Daga
                | Method::Mulda
                | Method::MlmEntity
                | Method::MelmPlain
                | Method::Melm
                | Method::MelmBoth
                | Method::CodemixRandom
                | Method::CodemixEss
                | Method::MelmCodemix,
            ) => {
                let (corpus, summary) = self.augment(plan, run)?;
                (corpus, Some(summary))
            }
        })
    }

    /// Makes and judges the drafts of a plan. Returns the augmented training set, and the number of drafts by verdict.
    fn augment(&self, plan: &Plan, run: &mut Run<'_>) -> Result<(Corpus, DraftSummary), Error> {
        let models = &self.runner.models;
        let backbones = Backbones {
            masked_lm: models.masked_lm.as_ref(),
            seq2seq: None,
            tagger: Some(&models.tagger),
            judge: self.judge.as_ref().map(|(_, trained)| &trained.tagger),
            vectors: models.vectors.as_ref(),
        };
        let train = &self.gold.train;
        let gold = Gold { train, dev: self.gold.dev.as_ref() };
        let augmented = augment(gold, plan, backbones, self.device, run)?;
        let summary = augmented.summary(train);
        let first = if plan.union { train.sentences() } else { &[] };
        let all = first.iter().cloned().chain(augmented.kept().cloned()).collect();
        let corpus = Corpus::new(train.types().clone(), train.scheme(), all)
            .expect("drafts are valid in the scheme of gold");
        Ok((corpus, summary))
    }

    /// Trains the judge, a tagger on gold alone, unless the last judge has the same settings.
    fn make_judge(&mut self, plan: &Plan, run: &mut Run<'_>) -> Result<(), Error> {
        let settings = self.tagger_settings(plan, plan.tagger.training.budget);
        if self.judge.as_ref().is_none_or(|(known, _)| *known != settings) {
            self.judge = None;
            let trained = self.train(&self.gold.train, &settings, run)?;
            self.judge = Some((settings, trained));
        }
        Ok(())
    }

    /// Scores a tagger on the dev set of the draw and on the test sets of its cell.
    fn score(
        &self,
        cell: &Cell,
        tagger: &TaggerModel,
    ) -> Result<(Option<F1>, BTreeMap<String, F1>), Error> {
        let score = |corpus: &Corpus| -> Result<F1, Error> {
            Ok(F1::from_scored(&tagger.score(self.device, corpus)?))
        };
        let dev = self.gold.dev.as_ref().map(score).transpose()?;
        let mut test = BTreeMap::new();
        for name in self.runner.test_languages(cell) {
            if let Some(dataset) = &self.runner.languages[name].test {
                test.insert(name.to_owned(), score(dataset.corpus())?);
            }
        }
        Ok((dev, test))
    }

    /// Scores a tagger and returns the ledger line of its cell.
    fn line(
        &self,
        cell: &Cell,
        plan: &Plan,
        made: &TrainingSet,
        trained: &TrainedTagger,
        train_seconds: f64,
    ) -> Result<LedgerLine, Error> {
        let runner = self.runner;
        let started = runner.now();
        let (dev, test) = self.score(cell, &trained.tagger)?;
        let score_seconds = runner.now() - started;
        let round = |seconds: f64| (seconds * 100.0).round() / 100.0;
        let kept =
            trained.outcome.best.filter(|_| plan.tagger.training.keep == CheckpointChoice::Best);
        let masked_lm = runner.models.masked_lm.as_ref();
        Ok(LedgerLine {
            key: runner.key(cell),
            melm: env!("CARGO_PKG_VERSION").to_owned(),
            cell: cell.clone(),
            dev,
            test,
            n_train: made.corpus.sentences().len(),
            drafts: made.summary.clone(),
            updates: trained.outcome.n_steps,
            best_epoch: kept.map(|best| best.epoch),
            seconds: Seconds {
                drafts: round(made.seconds),
                train: round(train_seconds),
                score: round(score_seconds),
            },
            data: runner.data_fingerprints(cell),
            plan: plan_name(plan),
            models: [plan.model.masked_lm.clone(), plan.model.tagger.clone()],
            n_parameters: masked_lm.map_or(0, |lm| lm.checkpoint().n_parameters()),
            device: runner.fingerprints.arithmetic.clone(),
        })
    }
}

/// Returns the name of a plan: the beginning of its SHA-256. Ledgers and the files in the folder `plans` use this name.
pub(crate) fn plan_name(plan: &Plan) -> String {
    sha256(plan.to_toml().as_bytes())[..16].to_owned()
}
