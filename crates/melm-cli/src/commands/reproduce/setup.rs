//! Opens the plans, models, vectors and devices of an experiment.

use std::num::NonZeroUsize;
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use melm::codemix::{MentionVectors, VectorKind};
use melm::models::ModelStore;
use melm::plan::{PlanBuilder, PlanTable};
use melm::stage::Control;
use melm_eval::{
    Cell, CellEvent, ExperimentModels, ExperimentRunner, Grid, Languages, Ledger, Plans, Progress,
    ProgressMeter, RunSummary, joined_training_sets,
};
use melm_nn::device::n_cores;

use crate::args::{ComparisonOptions, DeviceOptions};
use crate::failure::Failure;
use crate::interrupt::{self, DeferInterrupt};
use crate::machine;
use crate::progress;
use crate::settings;
use crate::terminal::{Terminal, count};
use crate::vectors;

/// An experiment and its options.
pub(crate) struct Experiment<'a> {
    pub(crate) runner: ExperimentRunner,
    options: &'a ComparisonOptions,
    /// The name of the device.
    device: String,
    started: Instant,
}

impl<'a> Experiment<'a> {
    /// Builds the plans and opens models, vectors and device.
    pub(crate) fn open(
        options: &'a ComparisonOptions,
        grid: Grid,
        languages: Languages,
        terminal: &Terminal,
    ) -> Result<Self, Failure> {
        let store = machine::models(terminal);
        let plans = plans(options, &grid, &store)?;
        let needs = plans.needs(&grid);
        let names = plans.models();
        // Opened before vectors are read, which can take minutes.
        let masked_lm = plans.open_masked_lm(&grid, &store)?;
        let tagger = store.open(&names.tagger)?;
        let corpus = || joined_training_sets(&languages);
        let vectors = match (needs.vectors, &masked_lm) {
            (Some(VectorKind::Pieces), Some(model)) => {
                Some(MentionVectors::from_piece_embeddings(&corpus(), model)?)
            }
            // Without `--vectors`, `ExperimentRunner::check_vectors` fails and names the cells that need vectors.
            (Some(VectorKind::Words), _) if !options.vectors.is_empty() => {
                Some(vectors::read_files(&options.vectors, &corpus(), terminal)?)
            }
            _ => None,
        };
        let (first, device) = machine::device(&job_device_options(options))?;
        let seq2seq = needs.seq2seq.then(|| store.open_seq2seq(&names.seq2seq)).transpose()?;
        let models = ExperimentModels { masked_lm, tagger, seq2seq, vectors };
        let started = Instant::now();
        let runner = ExperimentRunner::new(grid, languages, plans, models, first.arithmetic())?
            .with_clock(Box::new(move || started.elapsed().as_secs_f64()));
        Ok(Self { runner, options, device, started })
    }

    /// Returns one line with the number of cells, the model, the test sets and the device.
    pub(crate) fn describe(&self, cells: &[Cell]) -> String {
        let jobs = match self.options.jobs.get() {
            1 => String::new(),
            n => format!(", {n} at a time"),
        };
        let tests = match self.runner.n_test_sets() {
            0 => "dev sets only".to_owned(),
            n => count(n, "test set"),
        };
        let model = self.runner.models().tagger.name();
        format!("{} with {model}, {tests}{jobs}; {}", count(cells.len(), "cell"), self.device)
    }

    /// Runs the cells that are not in the ledger, and shows the progress.
    pub(crate) fn run(
        &self,
        cells: &[Cell],
        ledger: &mut Ledger,
        terminal: &Terminal,
    ) -> Result<RunSummary, Failure> {
        let _deferred = DeferInterrupt::new();
        let display = Mutex::new(Display::new(terminal));
        let machine = job_device_options(self.options);
        let open = || machine::device(&machine).map(|(device, _)| device);
        let on_progress = |cell: &Cell, progress: Progress<'_>| {
            display.lock().unwrap_or_else(PoisonError::into_inner).show(cell, progress);
            if interrupt::is_requested() { Control::Stop } else { Control::Continue }
        };
        let summary = self.runner.run(cells, ledger, self.options.jobs, &open, &on_progress)?;
        drop(display);
        let passed = progress::duration(self.started.elapsed().as_secs_f64());
        terminal.info(&format!("done in {passed}"));
        Ok(summary)
    }
}

/// Returns the device options of one job. Without `--threads`, the threads are divided equally between the jobs.
fn job_device_options(options: &ComparisonOptions) -> DeviceOptions {
    let share = NonZeroUsize::new(n_cores() / options.jobs.get()).unwrap_or(NonZeroUsize::MIN);
    let DeviceOptions { device, threads, precision } = options.device_options;
    DeviceOptions { device, threads: Some(threads.unwrap_or(share)), precision }
}

/// Returns the plans of the variants of a grid. Options override settings of the grid, and settings of variants
/// override options.
fn plans(options: &ComparisonOptions, grid: &Grid, models: &ModelStore) -> Result<Plans, Failure> {
    let mut changes = PlanBuilder::new(options.preset);
    for edit in &options.set {
        changes = changes.set(edit);
    }
    changes = vectors::set_kind(changes, &options.vectors)?;
    changes =
        settings::set_models(changes, options.model.as_deref(), options.tagger_model.as_deref());
    changes = settings::set_mulda_model(changes, options.mulda_model.as_deref());
    let edit = |table: &mut PlanTable| -> Result<(), Failure> { Ok(changes.apply(table)?) };
    Plans::for_models(grid, options.preset, models, &edit)
}

/// Shows the progress of all cells together.
struct Display {
    meter: ProgressMeter,
    progress: progress::Progress,
    terminal: Terminal,
}

impl Display {
    fn new(terminal: &Terminal) -> Self {
        let progress = progress::Progress::for_steps("cells", terminal);
        Self { meter: ProgressMeter::default(), progress, terminal: *terminal }
    }

    fn show(&mut self, cell: &Cell, progress: Progress<'_>) {
        match progress.event {
            CellEvent::Stage(..) => {}
            CellEvent::Done(dev) => {
                let dev = dev.map(|dev| format!(": dev F1 {dev:.2}")).unwrap_or_default();
                self.note(format!("{cell}{dev}"), self.terminal.is_verbose());
            }
            CellEvent::Diverged(error) => self.note(format!("{cell}: {error}"), true),
        }
        if let Some((done, of)) = self.meter.record(cell, progress) {
            self.progress.set_step(done, of);
        }
    }

    fn note(&mut self, note: String, is_printed: bool) {
        if is_printed {
            self.progress.clear();
            self.terminal.info(&note);
        }
        self.progress.set_note(note);
    }
}
