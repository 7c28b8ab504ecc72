//! The cells of one draw and seed, which share their gold, their judge and their drafts.

use std::collections::BTreeMap;
use std::num::NonZeroU64;

use melm_nn::device::Device;
use melm_text::Corpus;

use super::bench::Bench;
use super::data::Drawn;
use super::extra::{New, extended};
use super::ledger::{F1, Line, Seconds};
use super::{Cell, System};
use crate::Error;
use melm::augment::{Backbones, DraftSummary, Gold, Method, augment};
use melm::files::sha256;
use melm::plan::Plan;
use melm::random::Seed;
use melm::stage::{Control, Event, Run};
use melm::tagger::{Tagger, TaggerSettings, TrainedTagger};
use melm::training::{Budget, CheckpointChoice, EvaluationInterval};

/// Hears the cell under way, a stage's name and what it has to tell.
pub(crate) type Hear<'a> = &'a mut dyn FnMut(&Cell, &'static str, Event<'_>) -> Control;

/// Gold, and what the last cells made of it: no file is written, and nothing is made twice in a row.
pub(crate) struct Group<'a> {
    bench: &'a Bench<'a>,
    device: &'a Device,
    drawn: Drawn,
    judge: Option<(TaggerSettings, TrainedTagger)>,
    made: Option<Made>,
}

/// The training set of a method, which its budgets share.
struct Made {
    plan: Plan,
    method: System,
    train: Corpus,
    funnel: Option<DraftSummary>,
    seconds: f64,
}

impl<'a> Group<'a> {
    pub(crate) fn new(
        bench: &'a Bench<'a>,
        cell: &Cell,
        device: &'a Device,
    ) -> Result<Self, Error> {
        let languages = cell.languages().map(|name| (name, &bench.languages[name]));
        let drawn = Drawn::new(languages, (cell.size, cell.draw))?;
        Ok(Self { bench, device, drawn, judge: None, made: None })
    }

    /// Trains and scores the tagger of a cell.
    pub(crate) fn run(&mut self, cell: &Cell, hear: Hear<'_>) -> Result<Line, Error> {
        let plan = self.bench.plan_of(cell);
        let mut listen = |stage: &'static str, event: Event<'_>| hear(cell, stage, event);
        let run = &mut Run { seed: Seed(cell.seed), folder: None, observer: &mut listen };
        self.make(cell, &plan, run)?;
        let made = self.made.as_ref().expect("it was just made");
        let settings = self.settings(&plan, cell.budget);
        let started = self.bench.now();
        let judge = self
            .judge
            .as_ref()
            .filter(|(known, _)| cell.method == System::GOLD && *known == settings);
        let own;
        let trained = if let Some((_, trained)) = judge {
            trained
        } else {
            own = self.train(&made.train, &settings, run)?;
            &own
        };
        let train = self.bench.now() - started;
        let line =
            self.line(cell, (&plan, made), trained, Seconds { train, ..Seconds::default() })?;
        if let Some(folder) = self.bench.keep_taggers {
            trained.tagger.save(&folder.join(&line.key[..16]))?;
        }
        Ok(line)
    }

    /// Train and dev of the draw.
    pub(crate) fn into_gold(self) -> (Corpus, Option<Corpus>) {
        (self.drawn.train, self.drawn.dev)
    }

    /// The training set of a cell, and the gold it was made of.
    pub(crate) fn training_set(
        &mut self,
        cell: &Cell,
        hear: Hear<'_>,
    ) -> Result<(&Corpus, &Corpus), Error> {
        let plan = self.bench.plan_of(cell);
        let mut listen = |stage: &'static str, event: Event<'_>| hear(cell, stage, event);
        let run = &mut Run { seed: Seed(cell.seed), folder: None, observer: &mut listen };
        self.make(cell, &plan, run)?;
        Ok((&self.made.as_ref().expect("it was just made").train, &self.drawn.train))
    }

    fn train(
        &self,
        train: &Corpus,
        settings: &TaggerSettings,
        run: &mut Run<'_>,
    ) -> Result<TrainedTagger, Error> {
        let (dev, stage) = (self.drawn.dev.as_ref(), &mut run.stage("tagger"));
        Ok(Tagger::train(self.bench.tagger, train, dev, settings, self.device, stage)?)
    }

    /// The settings of a tagger with this budget. A number of updates is divided by the same number of evaluations,
    /// whatever the size of the training set.
    fn settings(&self, plan: &Plan, budget: Budget) -> TaggerSettings {
        let mut settings = plan.tagger.clone();
        settings.training.budget = budget;
        if let Budget::Updates(updates) = budget {
            let between = NonZeroU64::new(updates.get() / self.bench.evaluations);
            settings.training.evaluate_every =
                EvaluationInterval::updates(between.unwrap_or(NonZeroU64::MIN));
        }
        settings
    }

    /// Makes the training set of a cell, unless the last cell had the same.
    fn make(&mut self, cell: &Cell, plan: &Plan, run: &mut Run<'_>) -> Result<(), Error> {
        // A budget of gold that is the plan's is the judge of the others.
        if plan.has_judge()
            || cell.method == System::GOLD && cell.budget == plan.tagger.training.budget
        {
            self.make_judge(plan, run)?;
        }
        let is_same = |made: &Made| made.plan == *plan && made.method == cell.method;
        if self.made.as_ref().is_some_and(is_same) {
            return Ok(());
        }
        let started = self.bench.now();
        let gold = &self.drawn.train;
        let (train, funnel) = match cell.method {
            System::Method(Method::Gold) => (gold.clone(), None),
            System::GoldDuplicated => {
                let times = 1 + plan.generate.rounds.get() as usize;
                (super::gathered(&vec![gold.clone(); times])?, None)
            }
            System::AddEntity | System::AddContext => {
                let is_entity = cell.method == System::AddEntity;
                let new = if is_entity { New::Entities } else { New::Contexts };
                let key = run.seed.stream("extra");
                (extended((gold, &self.drawn.extra), new, key)?, None)
            }
            System::Method(_) => {
                let backbones = Backbones {
                    masked_lm: self.bench.masked_lm,
                    seq2seq: None,
                    tagger: Some(self.bench.tagger),
                    judge: self.judge.as_ref().map(|(_, trained)| &trained.tagger),
                    vectors: self.bench.vectors,
                };
                let given = Gold { train: gold, dev: self.drawn.dev.as_ref() };
                let augmented = augment(given, plan, backbones, self.device, run)?;
                let funnel = augmented.summary(gold);
                let first = if plan.union { gold.sentences() } else { &[] };
                let all = first.iter().cloned().chain(augmented.kept().cloned()).collect();
                let train = Corpus::new(gold.types().clone(), gold.scheme(), all)
                    .expect("drafts are valid in the scheme of gold");
                (train, Some(funnel))
            }
        };
        let seconds = self.bench.now() - started;
        self.made = Some(Made { plan: plan.clone(), method: cell.method, train, funnel, seconds });
        Ok(())
    }

    /// Trains the gold-only tagger of the plan, unless it is the last one's.
    fn make_judge(&mut self, plan: &Plan, run: &mut Run<'_>) -> Result<(), Error> {
        let settings = self.settings(plan, plan.tagger.training.budget);
        if self.judge.as_ref().is_none_or(|(known, _)| *known != settings) {
            self.judge = None;
            let trained = self.train(&self.drawn.train, &settings, run)?;
            self.judge = Some((settings, trained));
        }
        Ok(())
    }

    fn line(
        &self,
        cell: &Cell,
        (plan, made): (&Plan, &Made),
        trained: &TrainedTagger,
        seconds: Seconds,
    ) -> Result<Line, Error> {
        let started = self.bench.now();
        let score = |corpus: &Corpus| -> Result<F1, Error> {
            Ok(F1::of(&trained.tagger.score(self.device, corpus)?))
        };
        let dev = self.drawn.dev.as_ref().map(score).transpose()?;
        let mut test = BTreeMap::new();
        for name in self.bench.tests_of(cell) {
            if let Some(split) = &self.bench.languages[name].test {
                test.insert(name.to_owned(), score(&split.corpus)?);
            }
        }
        let score = self.bench.now() - started;
        let round = |seconds: f64| (seconds * 100.0).round() / 100.0;
        let kept =
            trained.outcome.best.filter(|_| plan.tagger.training.keep == CheckpointChoice::Best);
        Ok(Line {
            key: self.bench.key(cell),
            melm: env!("CARGO_PKG_VERSION").to_owned(),
            cell: cell.clone(),
            dev,
            test,
            n_train: made.train.sentences().len(),
            drafts: made.funnel.clone(),
            updates: trained.outcome.n_steps,
            best_epoch: kept.map(|best| best.epoch),
            seconds: Seconds {
                drafts: round(made.seconds),
                train: round(seconds.train),
                score: round(score),
            },
            data: self.bench.fingerprints(cell),
            plan: sha256(plan.to_toml().as_bytes())[..16].to_owned(),
            models: [plan.model.masked_lm.clone(), plan.model.tagger.clone()],
            n_parameters: self.bench.masked_lm.map_or(0, |lm| lm.checkpoint().n_parameters()),
            device: self.bench.arithmetic.device.clone(),
        })
    }
}
