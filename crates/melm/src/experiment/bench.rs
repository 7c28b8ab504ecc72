//! Runs cells, several at a time.

use std::collections::BTreeMap;
use std::num::{NonZeroU64, NonZeroUsize};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use melm_nn::device::Device;

use super::group::Group;
use super::key::{Arithmetic, key};
use super::ledger::Ledger;
use super::{Cell, Grid, Languages};
use crate::Error;
use crate::codemix::Vectors;
use crate::model::Pretrained;
use crate::plan::Plan;
use crate::stage::{Event, Wish};

/// Everything that cells have in common.
pub struct Bench<'a> {
    /// The grid.
    pub grid: &'a Grid,
    /// How often a training of so many updates is evaluated.
    pub evaluations: NonZeroU64,
    /// The data; languages without a test set are not scored on it.
    pub languages: &'a Languages,
    /// The plan of each variant. Method and seed are the cell's.
    pub plans: &'a BTreeMap<String, Plan>,
    /// The masked language model, if any method needs it.
    pub masked_lm: Option<&'a Pretrained>,
    /// Vectors of the words of all mentions, if any method compares by them.
    pub vectors: Option<&'a Vectors>,
    /// The tagger's encoder.
    pub tagger: &'a Pretrained,
    /// What decides results beside data and plan.
    pub arithmetic: Arithmetic,
    /// Where every tagger is kept, if anywhere.
    pub keep_taggers: Option<&'a Path>,
    /// The time in seconds since any moment.
    pub clock: &'a (dyn Fn() -> f64 + Sync),
}

/// How far a grid is.
#[derive(Clone, Copy, Debug)]
pub enum Progress<'a> {
    /// A stage of a cell has something to tell.
    Stage(&'static str, Event<'a>),
    /// A cell is done, with this dev F1 in percent.
    Done(f64),
    /// A cell has diverged: there is no line of it.
    Diverged(&'a Error),
}

/// What a run of the bench did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Cells that were in the ledger already.
    pub n_known: usize,
    /// Cells run now.
    pub n_run: usize,
    /// Cells that diverged.
    pub n_diverged: usize,
    /// Cells whose result another cell had, since their settings differ in nothing they read.
    pub n_shared: usize,
}

/// Hears a cell, how many of the cells to run are done, and how far it is.
pub type Hear<'a> = &'a (dyn Fn(&Cell, (usize, usize), Progress<'_>) -> Wish + Sync);

/// Opens a device, in the thread that is going to use it.
pub type OpenDevice<'a, E> = &'a (dyn Fn() -> Result<Device, E> + Sync);

/// Why a job ended early.
enum Fault<E> {
    Device(E),
    Cell(Error),
}

impl<E> From<Error> for Fault<E> {
    fn from(error: Error) -> Self {
        Self::Cell(error)
    }
}

impl Bench<'_> {
    /// The plan of a cell.
    pub fn plan_of(&self, cell: &Cell) -> Plan {
        let mut plan = self.plans[&cell.variant].clone();
        plan.seed = cell.seed;
        if let super::System::Method(method) = cell.method {
            plan.method = method;
        }
        if cell.method.drafts().is_none() {
            plan.method = crate::augment::Method::Gold;
        }
        plan
    }

    /// Stands for everything that can change the result of a cell.
    pub fn key(&self, cell: &Cell) -> String {
        let plan = (&self.plans[&cell.variant], self.evaluations.get());
        key(cell, plan, self.languages, &self.arithmetic)
    }

    /// The languages that a cell is scored on: those whose test sets were handed in.
    pub(super) fn tests_of<'c>(&'c self, cell: &'c Cell) -> impl Iterator<Item = &'c str> {
        let has_test = |name: &&str| self.languages.get(*name).is_some_and(|l| l.test.is_some());
        self.grid.tests_of(cell).filter(has_test)
    }

    pub(super) fn fingerprints(&self, cell: &Cell) -> BTreeMap<String, Vec<String>> {
        let mut all: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for name in cell.languages() {
            let language = &self.languages[name];
            let both = [&language.train, &language.dev].map(|split| split.fingerprint.clone());
            all.insert(name.to_owned(), both.to_vec());
        }
        for name in self.tests_of(cell) {
            let test = self.languages[name].test.as_ref().map(|test| test.fingerprint.clone());
            all.entry(name.to_owned()).or_default().extend(test);
        }
        all
    }

    pub(super) fn now(&self) -> f64 {
        (self.clock)()
    }

    /// Runs the cells that the ledger does not have, `n_jobs` at a time, each job on a device of its own.
    pub fn run<E: From<Error> + Send>(
        &self,
        cells: &[Cell],
        ledger: &Mutex<Ledger>,
        (n_jobs, open): (NonZeroUsize, OpenDevice<'_, E>),
        hear: Hear<'_>,
    ) -> Result<Tally, E> {
        let mut tally = Tally::default();
        let missing = self.missing(cells, ledger)?;
        let (mut to_run, mut shared): (Vec<&Cell>, Vec<&Cell>) = (Vec::new(), Vec::new());
        let mut keys = std::collections::BTreeSet::new();
        for cell in missing {
            if keys.insert(self.key(cell)) { to_run.push(cell) } else { shared.push(cell) }
        }
        tally.n_known = cells.len() - to_run.len() - shared.len();
        let groups: Vec<_> = to_run.chunk_by(|a, b| a.is_beside(b)).collect();
        let (next, done, n_diverged) = Default::default();
        let counters: (&AtomicUsize, &AtomicUsize, &AtomicUsize) = (&next, &done, &n_diverged);
        let (next, done, n_diverged) = counters;
        let has_failed = AtomicBool::new(false);
        let work = || -> Result<(), Fault<E>> {
            let device = open().map_err(Fault::Device)?;
            while let Some(group) = groups.get(next.fetch_add(1, Ordering::SeqCst)) {
                let mut shared = Group::new(self, group[0], &device)?;
                for cell in *group {
                    let result = shared.run(cell, &mut |cell, stage, event| {
                        let at = (done.load(Ordering::SeqCst), to_run.len());
                        let wish = hear(cell, at, Progress::Stage(stage, event));
                        // One failure ends all: what is done stays, and the same command goes on.
                        if has_failed.load(Ordering::SeqCst) { Wish::Stop } else { wish }
                    });
                    let at = (done.fetch_add(1, Ordering::SeqCst) + 1, to_run.len());
                    let wish = match result {
                        Ok(line) => {
                            let dev = line.dev.percent();
                            ledger.lock().unwrap_or_else(PoisonError::into_inner).add(line)?;
                            hear(cell, at, Progress::Done(dev))
                        }
                        Err(error @ Error::Diverged { .. }) => {
                            n_diverged.fetch_add(1, Ordering::SeqCst);
                            hear(cell, at, Progress::Diverged(&error))
                        }
                        Err(error) => return Err(error.into()),
                    };
                    if wish == Wish::Stop {
                        return Err(Error::Interrupted.into());
                    }
                }
            }
            Ok(())
        };
        std::thread::scope(|scope| {
            let n_jobs = n_jobs.get().min(groups.len());
            let work = || {
                let ended = work();
                has_failed.fetch_or(ended.is_err(), Ordering::SeqCst);
                ended
            };
            let jobs: Vec<_> = (0..n_jobs).map(|_| scope.spawn(work)).collect();
            let ended = jobs.into_iter().map(|job| job.join().expect("a job does not panic"));
            let mut ended: Vec<_> = ended.collect();
            // Those that only stopped since another failed have nothing to say.
            ended.sort_by_key(|ended| matches!(ended, Err(Fault::Cell(Error::Interrupted))));
            ended.into_iter().collect::<Result<(), Fault<E>>>()
        })
        .map_err(|fault| match fault {
            Fault::Device(error) => error,
            Fault::Cell(error) => error.into(),
        })?;
        tally.n_diverged = n_diverged.load(Ordering::SeqCst);
        (tally.n_run, tally.n_shared) = (to_run.len() - tally.n_diverged, shared.len());
        let mut ledger = ledger.lock().unwrap_or_else(PoisonError::into_inner);
        for cell in shared {
            let tests: Vec<_> = self.tests_of(cell).collect();
            if let Some(twin) = ledger.twin(&self.key(cell), &tests).cloned() {
                ledger.add(super::Line { cell: cell.clone(), ..twin })?;
            }
        }
        Ok(tally)
    }

    /// The cells to run. What another cell of the ledger has already is put down at once.
    fn missing<'c>(
        &self,
        cells: &'c [Cell],
        ledger: &Mutex<Ledger>,
    ) -> Result<Vec<&'c Cell>, Error> {
        let mut ledger = ledger.lock().unwrap_or_else(PoisonError::into_inner);
        let mut missing = Vec::new();
        for cell in cells {
            let (key, tests) = (self.key(cell), self.tests_of(cell).collect::<Vec<_>>());
            if ledger.find(cell, &key, &tests).is_some() {
                continue;
            }
            match ledger.twin(&key, &tests).cloned() {
                Some(twin) => ledger.add(super::Line { cell: cell.clone(), ..twin })?,
                None => missing.push(cell),
            }
        }
        Ok(missing)
    }
}
