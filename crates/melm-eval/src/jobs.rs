//! Runs cells, several at a time.

use std::collections::BTreeSet;
use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use melm_nn::device::Device;

use super::bench::Bench;
use super::group::Group;
use super::{Cell, F1, Ledger, Line};
use crate::Error;
use melm::stage::{Control, Event};

/// How far a grid is.
#[derive(Clone, Copy, Debug)]
pub enum Progress<'a> {
    /// A stage of a cell has something to tell.
    Stage(&'static str, Event<'a>),
    /// A cell is done, with this dev F1 in percent if there is a dev set.
    Done(Option<f64>),
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
pub type Hear<'a> = &'a (dyn Fn(&Cell, (usize, usize), Progress<'_>) -> Control + Sync);

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
    /// Runs the cells that the ledger does not have, `n_jobs` at a time, each job on a device of its own.
    pub fn run<E: From<Error> + Send>(
        &self,
        cells: &[Cell],
        ledger: &Mutex<Ledger>,
        (n_jobs, open): (NonZeroUsize, OpenDevice<'_, E>),
        hear: Hear<'_>,
    ) -> Result<Tally, E> {
        self.share(cells, ledger)?;
        let missing = self.missing(cells, ledger);
        let mut keys = BTreeSet::new();
        let to_run: Vec<_> =
            missing.iter().copied().filter(|cell| keys.insert(self.key(cell))).collect();
        let jobs = Jobs::new(self, &to_run, ledger, hear);
        let ended = std::thread::scope(|scope| {
            let n_jobs = n_jobs.get().min(jobs.groups.len());
            let job = || jobs.run(open);
            let running: Vec<_> = (0..n_jobs).map(|_| scope.spawn(job)).collect();
            let ended = running.into_iter().map(|job| job.join().expect("a job does not panic"));
            ended.collect::<Vec<_>>()
        });
        let mut faults: Vec<_> = ended.into_iter().filter_map(Result::err).collect();
        // Those that only stopped since another failed have nothing to say.
        faults.sort_by_key(|fault| matches!(fault, Fault::Cell(error) if error.is_interruption()));
        match faults.into_iter().next() {
            Some(Fault::Device(error)) => return Err(error),
            Some(Fault::Cell(error)) => return Err(error.into()),
            None => self.share(cells, ledger)?,
        }
        let n_diverged = jobs.n_diverged.load(Ordering::SeqCst);
        Ok(Tally {
            n_known: cells.len() - missing.len(),
            n_run: to_run.len() - n_diverged,
            n_diverged,
            n_shared: missing.len() - to_run.len(),
        })
    }

    /// The cells that the ledger does not have.
    fn missing<'c>(&self, cells: &'c [Cell], ledger: &Mutex<Ledger>) -> Vec<&'c Cell> {
        let ledger = locked(ledger);
        let is_missing = |cell: &&Cell| {
            let tests: Vec<_> = self.tests_of(cell).collect();
            ledger.find(cell, &self.key(cell), &tests).is_none()
        };
        cells.iter().filter(is_missing).collect()
    }

    /// Puts down the cells whose result another cell of the ledger has: the same work, under other coordinates.
    fn share(&self, cells: &[Cell], ledger: &Mutex<Ledger>) -> Result<(), Error> {
        for cell in self.missing(cells, ledger) {
            let (key, tests) = (self.key(cell), self.tests_of(cell).collect::<Vec<_>>());
            let mut ledger = locked(ledger);
            if let Some(twin) = ledger.twin(&key, &tests).cloned() {
                ledger.add(Line { cell: cell.clone(), ..twin })?;
            }
        }
        Ok(())
    }
}

fn locked(ledger: &Mutex<Ledger>) -> MutexGuard<'_, Ledger> {
    ledger.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What the jobs share: cells that are still to be run, in groups of the same gold.
struct Jobs<'a> {
    bench: &'a Bench<'a>,
    groups: Vec<&'a [&'a Cell]>,
    n_cells: usize,
    ledger: &'a Mutex<Ledger>,
    hear: Hear<'a>,
    next: AtomicUsize,
    n_done: AtomicUsize,
    n_diverged: AtomicUsize,
    has_failed: AtomicBool,
}

impl<'a> Jobs<'a> {
    fn new(
        bench: &'a Bench<'a>,
        to_run: &'a [&'a Cell],
        ledger: &'a Mutex<Ledger>,
        hear: Hear<'a>,
    ) -> Self {
        Self {
            bench,
            groups: to_run.chunk_by(|a, b| a.is_beside(b)).collect(),
            n_cells: to_run.len(),
            ledger,
            hear,
            next: AtomicUsize::new(0),
            n_done: AtomicUsize::new(0),
            n_diverged: AtomicUsize::new(0),
            has_failed: AtomicBool::new(false),
        }
    }

    /// One job: takes group after group.
    fn run<E>(&self, open: OpenDevice<'_, E>) -> Result<(), Fault<E>> {
        let work = || -> Result<(), Fault<E>> {
            let device = open().map_err(Fault::Device)?;
            while let Some(group) = self.groups.get(self.next.fetch_add(1, Ordering::SeqCst)) {
                let mut shared = Group::new(self.bench, group[0], &device)?;
                for cell in *group {
                    self.run_cell(&mut shared, cell)?;
                }
            }
            Ok(())
        };
        let ended = work();
        self.has_failed.fetch_or(ended.is_err(), Ordering::SeqCst);
        ended
    }

    fn run_cell(&self, group: &mut Group<'_>, cell: &Cell) -> Result<(), Error> {
        let result = group.run(cell, &mut |cell, stage, event| {
            let at = (self.n_done.load(Ordering::SeqCst), self.n_cells);
            let wish = (self.hear)(cell, at, Progress::Stage(stage, event));
            // One failure ends all: what is done stays, and the same command goes on.
            if self.has_failed.load(Ordering::SeqCst) { Control::Stop } else { wish }
        });
        let at = (self.n_done.fetch_add(1, Ordering::SeqCst) + 1, self.n_cells);
        let wish = match result {
            Ok(line) => {
                let dev = line.dev.as_ref().map(F1::percent);
                locked(self.ledger).add(line)?;
                (self.hear)(cell, at, Progress::Done(dev))
            }
            Err(error @ Error::Melm(melm::Error::Diverged { .. })) => {
                self.n_diverged.fetch_add(1, Ordering::SeqCst);
                (self.hear)(cell, at, Progress::Diverged(&error))
            }
            Err(error) => return Err(error),
        };
        if wish == Control::Stop { Err(melm::Error::Interrupted.into()) } else { Ok(()) }
    }
}
