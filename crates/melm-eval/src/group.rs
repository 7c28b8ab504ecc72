//! Runs cells with the same gold and seed. These cells share a judge. Cells that differ only in the budget of the
//! tagger also share the training set.

use std::collections::BTreeMap;
use std::rc::Rc;

use melm::augment::{Backbones, DraftSummary, Gold, augment};
use melm::methods::Method;
use melm::names::Names;
use melm::plan::Plan;
use melm::random::Seed;
use melm::self_training::{SelfTrainingData, label_text};
use melm::stage::{Control, Event, Run};
use melm::tagger::{TaggerModel, TaggerSettings, TrainedTagger};
use melm::training::{Budget, CheckpointChoice};
use melm_nn::device::Device;
use melm_text::Corpus;

use crate::data::{Draw, concatenate, find_names};
use crate::ensemble::Ensemble;
use crate::ledger::{F1, LedgerLine, Scored, Seconds};
use crate::plans::plan_name;
use crate::swap::{Added, add_swapped};
use crate::text::{MemoryVotes, give_tags};
use crate::training_set::TrainingSet;
use crate::{Cell, Error, ExperimentRunner, System, TextChoice, TextResult};

/// Called with the cell that is being run, the name of a stage and an event of the stage.
pub(crate) type OnEvent<'a> = &'a mut dyn FnMut(&Cell, &'static str, Event<'_>) -> Control;

/// Runs cells with the same gold. Keeps the last judge, the training sets without text and the votes of panels in memory
/// for the next cells. Writes no files.
pub(crate) struct CellGroup<'a> {
    runner: &'a ExperimentRunner,
    device: &'a Device,
    /// The coordinates that all cells of the group share are those of this cell.
    first: Cell,
    gold: Draw,
    /// The lists of names, for the entity types that the gold has.
    names: Option<Names>,
    judge: Option<(TaggerSettings, TrainedTagger)>,
    /// The training sets without text that were made so far.
    training_sets: Vec<Rc<TrainingSet>>,
    votes: MemoryVotes,
    last: Option<Rc<TrainingSet>>,
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
        let lists = cell.languages().flat_map(|name| &runner.languages[name].names);
        let names = find_names(lists, &gold.train)?;
        let (training_sets, votes) = (Vec::new(), MemoryVotes::default());
        let first = cell.clone();
        Ok(Self {
            runner,
            device,
            first,
            gold,
            names,
            judge: None,
            training_sets,
            votes,
            last: None,
        })
    }

    /// Trains and scores the tagger of a cell.
    pub(crate) fn run(&mut self, cell: &Cell, on_event: OnEvent<'_>) -> Result<LedgerLine, Error> {
        let plan = self.runner.plans.cell(cell);
        let mut observer = |stage: &'static str, event: Event<'_>| on_event(cell, stage, event);
        let run = &mut Run { seed: Seed(cell.seed), folder: None, observer: &mut observer };
        let made = self.make_training_set(cell, &plan, run)?;
        let settings = self.tagger_settings(&plan, cell.budget);
        let started = self.runner.now();
        if cell.method == System::GoldEnsemble {
            return self.run_ensemble(cell, &plan, &made, &settings, run);
        }
        let judge =
            self.judge.as_ref().filter(|(known, _)| cell.is_gold_alone() && *known == settings);
        let own;
        let trained = if let Some((_, trained)) = judge {
            trained
        } else {
            own = self.train(&made.corpus, &settings, run)?;
            &own
        };
        let train_seconds = self.runner.now() - started;
        let scored = self.scored(cell, &plan, trained, train_seconds)?;
        let line = self.line(cell, &plan, &made, scored);
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
        let made = self.make_training_set(cell, &plan, run)?;
        self.last = Some(made);
        let corpus = &self.last.as_ref().expect("it was just set").corpus;
        Ok((corpus, &self.gold.train))
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

    /// Returns the settings of a tagger with this budget.
    fn tagger_settings(&self, plan: &Plan, budget: Budget) -> TaggerSettings {
        let mut settings = plan.tagger.clone();
        settings.training.budget = budget;
        self.runner.grid.set_evaluations(&mut settings, budget);
        settings
    }

    /// Makes the training set of a cell, unless another cell used the same one.
    fn make_training_set(
        &mut self,
        cell: &Cell,
        plan: &Plan,
        run: &mut Run<'_>,
    ) -> Result<Rc<TrainingSet>, Error> {
        // The tagger that a gold cell trains with the budget of the plan is also the judge of the other cells.
        let is_judge = cell.is_gold_alone() && cell.budget == plan.tagger.training.budget;
        if plan.has_judge() || is_judge {
            self.make_judge(plan, run)?;
        }
        let is_same = |made: &&Rc<TrainingSet>| made.is_for(cell, plan);
        if let Some(made) = self.last.as_ref().filter(is_same) {
            return Ok(Rc::clone(made));
        }
        let without_text = Cell { text: TextChoice::default(), ..cell.clone() };
        let known = self.training_sets.iter().find(|made| made.is_for(&without_text, plan));
        let mut made = if let Some(known) = known {
            Rc::clone(known)
        } else {
            let made = Rc::new(self.compose_timed(cell.method, plan, run)?);
            self.training_sets.push(Rc::clone(&made));
            made
        };
        if !cell.text.is_none() {
            made = Rc::new(self.add_text(cell, &made, plan, run)?);
        }
        self.last = Some(Rc::clone(&made));
        Ok(made)
    }

    fn compose_timed(
        &self,
        method: System,
        plan: &Plan,
        run: &mut Run<'_>,
    ) -> Result<TrainingSet, Error> {
        let started = self.runner.now();
        let (corpus, summary) = self.compose(method, plan, run)?;
        let mut made = TrainingSet { summary, ..TrainingSet::new(plan, method, corpus) };
        if method == System::Picked {
            // The corpus is the random draw so far, which the picked sentences replace.
            let picked = self.runner.pick(&self.first, plan, &made.corpus, self.device, run)?;
            (made.corpus, made.picked) = (picked.0, Some(picked.1));
        }
        made.seconds = self.runner.now() - started;
        Ok(made)
    }

    /// Labels the text of a cell and adds the kept sentences to the training set of its system.
    fn add_text(
        &mut self,
        cell: &Cell,
        made: &TrainingSet,
        plan: &Plan,
        run: &mut Run<'_>,
    ) -> Result<TrainingSet, Error> {
        let started = self.runner.now();
        let drawn = self.runner.draw_text(cell, &self.gold.train)?;
        let text = &drawn.corpus;
        let (given, accuracy) = give_tags(cell, text, &self.gold.train);
        let n_gold = if plan.union { self.gold.train.sentences().len() } else { 0 };
        let drafts = match cell.method.drafts() {
            Some(_) => &made.corpus.sentences()[n_gold..],
            None => &[],
        };
        let data = SelfTrainingData {
            gold: Gold { train: &self.gold.train, dev: self.gold.dev.as_ref() },
            drafts,
            text: text.sentences(),
            given: &given,
            shard: None,
        };
        let (tagger, votes) = (&self.runner.models.tagger, Some(&mut self.votes as _));
        let has_tags = |name: &str| self.runner.languages[name].text.is_none();
        let truth = Some(text).filter(|_| cell.text_languages().all(has_tags));
        let labelled = label_text(data, plan, tagger, self.device, run, votes)?;
        let result = TextResult::new(&labelled, drawn.n_left_out, &self.gold.train, truth);
        let result = TextResult { given: accuracy, ..result };
        Ok(TrainingSet {
            plan: plan.clone(),
            method: made.method,
            text: cell.text.clone(),
            corpus: made.corpus.with_more(labelled.kept().cloned()),
            summary: made.summary.clone(),
            text_result: Some(result),
            picked: None,
            seconds: made.seconds + self.runner.now() - started,
        })
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
            System::Method(Method::Gold) | System::GoldEnsemble | System::Picked => {
                (gold.clone(), None)
            }
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

    fn backbones(&self) -> Backbones<'_> {
        let models = &self.runner.models;
        Backbones {
            masked_lm: models.masked_lm.as_ref(),
            seq2seq: models.seq2seq.as_ref(),
            tagger: Some(&models.tagger),
            judge: self.judge.as_ref().map(|(_, trained)| &trained.tagger),
            vectors: models.vectors.as_ref(),
            names: self.names.as_ref(),
        }
    }

    /// Makes and judges the drafts of a plan. Returns the augmented training set, and the number of drafts by verdict.
    fn augment(&self, plan: &Plan, run: &mut Run<'_>) -> Result<(Corpus, DraftSummary), Error> {
        let train = &self.gold.train;
        let gold = Gold { train, dev: self.gold.dev.as_ref() };
        let augmented = augment(gold, plan, self.backbones(), self.device, run)?;
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
        for (name, dataset) in self.runner.test_sets(cell) {
            test.insert(name.to_owned(), score(dataset.corpus())?);
        }
        Ok((dev, test))
    }

    /// Trains several taggers on gold and scores the mentions that most of them predict.
    fn run_ensemble(
        &self,
        cell: &Cell,
        plan: &Plan,
        made: &TrainingSet,
        settings: &TaggerSettings,
        run: &mut Run<'_>,
    ) -> Result<LedgerLine, Error> {
        let started = self.runner.now();
        let mut dev = self.gold.dev.as_ref().map(Ensemble::new);
        let datasets = self.runner.test_sets(cell);
        let mut tests: Vec<_> =
            datasets.iter().map(|(name, set)| (*name, Ensemble::new(set.corpus()))).collect();
        let mut updates = 0;
        for number in 1..=plan.self_training.panel.get() as u64 {
            let seed =
                Seed(run.seed.stream("ensemble").at(number).generator().below(1 << 31) as u64);
            let mut own = Run { seed, folder: None, observer: &mut *run.observer };
            let trained = self.train(&made.corpus, settings, &mut own)?;
            updates += trained.outcome.n_steps;
            let ensembles = dev.iter_mut().chain(tests.iter_mut().map(|(_, test)| test));
            for ensemble in ensembles {
                ensemble.add(&trained.tagger, self.device)?;
            }
        }
        let scored = Scored {
            dev: dev.as_ref().map(Ensemble::score),
            test: tests.iter().map(|(name, test)| ((*name).to_owned(), test.score())).collect(),
            updates,
            best_epoch: None,
            train_seconds: self.runner.now() - started,
            score_seconds: 0.0,
        };
        Ok(self.line(cell, plan, made, scored))
    }

    /// Scores the tagger of a cell.
    fn scored(
        &self,
        cell: &Cell,
        plan: &Plan,
        trained: &TrainedTagger,
        train_seconds: f64,
    ) -> Result<Scored, Error> {
        let started = self.runner.now();
        let (dev, test) = self.score(cell, &trained.tagger)?;
        let score_seconds = self.runner.now() - started;
        let kept =
            trained.outcome.best.filter(|_| plan.tagger.training.keep == CheckpointChoice::Best);
        let updates = trained.outcome.n_steps;
        let best_epoch = kept.map(|best| best.epoch);
        Ok(Scored { dev, test, updates, best_epoch, train_seconds, score_seconds })
    }

    /// Returns the name of the pretrained encoder-decoder that a cell fine-tunes, if it does.
    fn seq2seq_name(&self, cell: &Cell) -> Option<String> {
        let seq2seq = self.runner.models.seq2seq.as_ref()?;
        (cell.method == System::Method(Method::Mulda)).then(|| seq2seq.name())
    }

    /// Returns the ledger line of a cell.
    fn line(&self, cell: &Cell, plan: &Plan, made: &TrainingSet, scored: Scored) -> LedgerLine {
        let runner = self.runner;
        let round = |seconds: f64| (seconds * 100.0).round() / 100.0;
        let masked_lm = runner.models.masked_lm.as_ref();
        LedgerLine {
            key: runner.key(cell),
            melm: env!("CARGO_PKG_VERSION").to_owned(),
            cell: cell.clone(),
            dev: scored.dev,
            test: scored.test,
            n_train: made.corpus.sentences().len(),
            drafts: made.summary.clone(),
            labelled: made.text_result.clone(),
            picked: made.picked.clone(),
            updates: scored.updates,
            best_epoch: scored.best_epoch,
            seconds: Seconds {
                drafts: round(made.seconds),
                train: round(scored.train_seconds),
                score: round(scored.score_seconds),
            },
            data: runner.data_fingerprints(cell),
            plan: plan_name(plan),
            models: [plan.model.masked_lm.clone(), plan.model.tagger.clone()],
            seq2seq: self.seq2seq_name(cell),
            n_parameters: masked_lm.map_or(0, |lm| lm.checkpoint().n_parameters()),
            device: runner.fingerprints.arithmetic.clone(),
        }
    }
}
