//! Runs cells, several at a time.

use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use melm::stage::{Control, Event};
use melm_nn::device::Device;

use crate::group::CellGroup;
use crate::{Cell, Error, ExperimentRunner, F1, Ledger, LedgerLine, System};

/// An event of a grid that is being run.
#[derive(Clone, Copy, Debug)]
pub struct Progress<'a> {
    /// The number of cells that are done.
    pub n_done: usize,
    /// The number of cells to run.
    pub n_cells: usize,
    /// The event.
    pub event: CellEvent<'a>,
}

/// An event of one cell.
#[derive(Clone, Copy, Debug)]
pub enum CellEvent<'a> {
    /// A stage of the cell reports an event.
    Stage(&'static str, Event<'a>),
    /// The cell is done. Holds its dev F1 in percent if there is a dev set.
    Done(Option<f64>),
    /// The training of the cell diverged. The cell has no line in the ledger.
    Diverged(&'a Error),
}

/// Counts of the cells of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RunSummary {
    /// Cells that were in the ledger already.
    pub n_known: usize,
    /// Cells that were run now.
    pub n_run: usize,
    /// Cells that diverged.
    pub n_diverged: usize,
    /// Cells that got the result of another cell, because the two differ only in settings that their system does not
    /// read.
    pub n_shared: usize,
}

/// Called with a cell and an event. Returns [`Control::Stop`] to end the run.
pub type OnProgress<'a> = &'a (dyn Fn(&Cell, Progress<'_>) -> Control + Sync);

/// Opens a device. Called in the thread that will use the device.
pub type OpenDevice<'a, E> = &'a (dyn Fn() -> Result<Device, E> + Sync);

/// Why a job ended early.
enum JobError<E> {
    Device(E),
    Cell(Error),
}

impl<E> From<Error> for JobError<E> {
    fn from(error: Error) -> Self {
        Self::Cell(error)
    }
}

impl ExperimentRunner {
    /// Runs the cells that are not in the ledger, `n_jobs` at a time. Each job has its own device.
    ///
    /// Adds a line to the ledger for each cell as soon as the cell is done. Fails on the first error of a cell. A
    /// training run that diverges is not an error, but is counted. Lines that were added before an error stay in the
    /// ledger.
    pub fn run<E: From<Error> + Send>(
        &self,
        cells: &[Cell],
        ledger: &mut Ledger,
        n_jobs: NonZeroUsize,
        open_device: OpenDevice<'_, E>,
        on_progress: OnProgress<'_>,
    ) -> Result<RunSummary, E> {
        self.share_lines(cells, ledger)?;
        let missing = self.missing(cells, ledger);
        let mut keys = BTreeSet::new();
        let to_run: Vec<_> =
            missing.iter().copied().filter(|cell| keys.insert(self.key(cell))).collect();
        let jobs = Jobs::new(self, &to_run, ledger, on_progress);
        let results = std::thread::scope(|scope| {
            let n_jobs = n_jobs.get().min(jobs.groups.len());
            let job = || jobs.run(open_device);
            let running: Vec<_> = (0..n_jobs).map(|_| scope.spawn(job)).collect();
            let ended = running.into_iter().map(|job| job.join().expect("a job does not panic"));
            ended.collect::<Vec<_>>()
        });
        let n_diverged = jobs.n_diverged.load(Ordering::SeqCst);
        let mut errors: Vec<_> = results.into_iter().filter_map(Result::err).collect();
        // Sort interruptions to the end: these jobs only stopped because another one failed.
        errors
            .sort_by_key(|error| matches!(error, JobError::Cell(error) if error.is_interruption()));
        match errors.into_iter().next() {
            Some(JobError::Device(error)) => return Err(error),
            Some(JobError::Cell(error)) => return Err(error.into()),
            None => self.share_lines(cells, ledger)?,
        }
        Ok(RunSummary {
            n_known: cells.len() - missing.len(),
            n_run: to_run.len() - n_diverged,
            n_diverged,
            n_shared: missing.len() - to_run.len(),
        })
    }

    /// Returns the cells that are not in the ledger.
    fn missing<'c>(&self, cells: &'c [Cell], ledger: &Ledger) -> Vec<&'c Cell> {
        let is_missing =
            |cell: &&Cell| ledger.find(cell, &self.key(cell), &self.test_languages(cell)).is_none();
        cells.iter().filter(is_missing).collect()
    }

    /// Adds a line for each cell if the ledger has another cell with the same key, because both have the same result.
    fn share_lines(&self, cells: &[Cell], ledger: &mut Ledger) -> Result<(), Error> {
        for cell in self.missing(cells, ledger) {
            let (key, tests) = (self.key(cell), self.test_languages(cell));
            if let Some(twin) = ledger.find_by_key(&key, &tests).cloned() {
                ledger.add(LedgerLine { cell: cell.clone(), ..twin })?;
            }
        }
        Ok(())
    }
}

/// The data that all jobs share, such as the cells that are still to be run. Cells with the same gold form a group.
struct Jobs<'a> {
    runner: &'a ExperimentRunner,
    groups: Vec<&'a [&'a Cell]>,
    n_cells: usize,
    ledger: Mutex<&'a mut Ledger>,
    on_progress: OnProgress<'a>,
    next: AtomicUsize,
    n_done: AtomicUsize,
    n_diverged: AtomicUsize,
    has_failed: AtomicBool,
}

impl<'a> Jobs<'a> {
    fn new(
        runner: &'a ExperimentRunner,
        to_run: &'a [&'a Cell],
        ledger: &'a mut Ledger,
        on_progress: OnProgress<'a>,
    ) -> Self {
        Self {
            runner,
            groups: to_run.chunk_by(|a, b| a.shares_gold_with(b)).collect(),
            n_cells: to_run.len(),
            ledger: Mutex::new(ledger),
            on_progress,
            next: AtomicUsize::new(0),
            n_done: AtomicUsize::new(0),
            n_diverged: AtomicUsize::new(0),
            has_failed: AtomicBool::new(false),
        }
    }

    /// Runs one job, which takes one group after the other until none is left.
    fn run<E>(&self, open_device: OpenDevice<'_, E>) -> Result<(), JobError<E>> {
        let work = || -> Result<(), JobError<E>> {
            let device = open_device().map_err(JobError::Device)?;
            self.check_arithmetic(&device)?;
            while let Some(group) = self.groups.get(self.next.fetch_add(1, Ordering::SeqCst)) {
                let mut shared = CellGroup::new(self.runner, group[0], &device)?;
                for cell in *group {
                    self.run_cell(&mut shared, cell)?;
                }
            }
            Ok(())
        };
        let result = work();
        self.has_failed.fetch_or(result.is_err(), Ordering::SeqCst);
        result
    }

    /// Fails if the arithmetic of the device is not that of the experiment. Otherwise new ledger lines would get wrong
    /// keys.
    fn check_arithmetic(&self, device: &Device) -> Result<(), Error> {
        let (expected, found) = (&self.runner.fingerprints.arithmetic, device.arithmetic());
        if found == expected {
            return Ok(());
        }
        Err(Error::OtherDevice { expected: expected.clone(), found: found.to_owned() })
    }

    fn run_cell(&self, group: &mut CellGroup<'_>, cell: &Cell) -> Result<(), Error> {
        let report = |n_done: usize, event: CellEvent<'_>| {
            (self.on_progress)(cell, Progress { n_done, n_cells: self.n_cells, event })
        };
        let result = group.run(cell, &mut |_, stage, event| {
            let n_done = self.n_done.load(Ordering::SeqCst);
            let wish = report(n_done, CellEvent::Stage(stage, event));
            // A failure stops all jobs. Lines of finished cells stay in the ledger, so that the same command can
            // continue.
            if self.has_failed.load(Ordering::SeqCst) { Control::Stop } else { wish }
        });
        let n_done = self.n_done.fetch_add(1, Ordering::SeqCst) + 1;
        let wish = match result {
            Ok(line) => {
                let dev = line.dev.as_ref().map(F1::percent);
                self.ledger().add(line)?;
                report(n_done, CellEvent::Done(dev))
            }
            Err(error @ Error::Melm(melm::Error::Diverged { .. })) => {
                self.n_diverged.fetch_add(1, Ordering::SeqCst);
                report(n_done, CellEvent::Diverged(&error))
            }
            Err(error) => return Err(error),
        };
        if wish == Control::Stop { Err(melm::Error::Interrupted.into()) } else { Ok(()) }
    }

    fn ledger(&self) -> MutexGuard<'_, &'a mut Ledger> {
        self.ledger.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Computes which part of a grid is done while several of its cells are running.
#[derive(Debug, Default)]
pub struct ProgressMeter {
    /// The percentage of each cell that is running.
    running: BTreeMap<String, u64>,
}

impl ProgressMeter {
    /// Records an event. Returns the work done and the total work, where one cell counts as 100. Returns `None` if the
    /// event does not change the work done.
    pub fn record(&mut self, cell: &Cell, progress: Progress<'_>) -> Option<(u64, u64)> {
        let name = cell.to_string();
        match progress.event {
            CellEvent::Stage(stage, Event::Progress { done, of }) => {
                // Drafts and picking, if there are any, count as half of a cell, the tagger as the rest.
                let is_made = cell.method.drafts().is_some() || cell.method == System::Picked;
                let drafts = if is_made { 50 } else { 0 };
                let (begin, share) =
                    if stage == "tagger" { (drafts, 100 - drafts) } else { (0, drafts) };
                self.running.insert(name, begin + share * done / of.max(1));
            }
            CellEvent::Stage(_, Event::Resumed { .. } | Event::Epoch(_) | Event::Batch) => {
                return None;
            }
            CellEvent::Done(_) | CellEvent::Diverged(_) => {
                self.running.remove(&name);
            }
        }
        let done = progress.n_done as u64 * 100 + self.running.values().sum::<u64>();
        Some((done, progress.n_cells as u64 * 100))
    }
}
