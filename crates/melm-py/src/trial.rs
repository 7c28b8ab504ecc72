//! `melm.trial`: measures by cross-validation whether augmentation helps.

use std::num::{NonZeroU16, NonZeroU64, NonZeroUsize};
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use melm::notes::type_warnings;
use melm::plan::PlanTable;
use melm_cli::host::ErrorReport;
use melm_eval::{
    Cell, ExperimentModels, ExperimentRunner, Grid, Languages, Ledger, Plans, Progress,
    ProgressMeter, System, Trial, TrialDefaults,
};
use melm_nn::device::Device;
use melm_text::KnownSentences;
use pyo3::prelude::*;

use crate::data::Data;
use crate::run::{self, Reporter};
use crate::settings::Settings;

/// Compares methods with gold. Returns the JSON of `melm trial --json`, and the table as Markdown. Scores of finished
/// taggers are stored in `folder`, if one is given.
#[pyfunction]
pub(crate) fn trial(
    py: Python<'_>,
    data: Data,
    size: TrialSize,
    settings: &Settings,
    folder: Option<PathBuf>,
    on_message: &Bound<'_, PyAny>,
) -> PyResult<(String, String)> {
    run::run(py, on_message, |reporter| {
        let defaults = TrialDefaults::for_device(&*settings.open_device()?);
        let trial = size.describe(defaults)?;
        for warning in type_warnings(data.train()) {
            reporter.note(warning);
        }
        let trial = match data.text() {
            Some(text) => {
                let known = KnownSentences::new(data.train(), data.dev(), &data.held_out());
                let trial = trial.with_text(text, &known)?;
                trial.text_note().into_iter().for_each(|note| reporter.note(note));
                trial
            }
            None => trial,
        };
        let (grid, languages) = trial.prepare(data.train(), data.dev())?;
        let cells = grid.cells();
        let runner = open_runner(grid, languages, settings)?;
        let mut ledger = match &folder {
            Some(dir) => Ledger::open(dir, "ledger.jsonl")?,
            None => Ledger::in_memory(),
        };
        run_cells(&runner, &cells, &mut ledger, settings, reporter)?;
        let result = trial.result(&runner.current_lines(ledger.lines().to_vec(), &cells));
        Ok((result.to_json(&trial.systems()).to_string(), result.markdown()))
    })
}

/// The size of a trial: the keys of a Python dict. `None` stands for the default of the device.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct TrialSize {
    folds: usize,
    seeds: Option<u16>,
    updates: Option<u64>,
    methods: Option<Vec<String>>,
}

impl TrialSize {
    fn describe(&self, defaults: TrialDefaults) -> Result<Trial, ErrorReport> {
        let positive = |name: &str| ErrorReport::config(format!("`{name}` must be at least 1"));
        let seeds = NonZeroU16::new(self.seeds.unwrap_or(defaults.seeds))
            .ok_or_else(|| positive("seeds"))?;
        let updates = NonZeroU64::new(self.updates.unwrap_or(defaults.updates))
            .ok_or_else(|| positive("updates"))?;
        let parse = |name: &String| {
            name.parse::<System>()
                .map_err(|error| ErrorReport::config(format!("`methods`: `{name}`: {error}")))
        };
        let methods = match &self.methods {
            Some(names) => names.iter().map(parse).collect::<Result<Vec<_>, _>>()?,
            None => defaults.methods.iter().copied().map(System::Method).collect(),
        };
        Ok(Trial::new(self.folds, seeds, updates, &methods)?)
    }
}

/// Builds the plans and opens the models.
fn open_runner(
    grid: Grid,
    languages: Languages,
    settings: &Settings,
) -> Result<ExperimentRunner, ErrorReport> {
    let edit =
        |table: &mut PlanTable| -> Result<(), ErrorReport> { Ok(settings.plan.apply(table)?) };
    let store = settings.models();
    let plans = Plans::for_models(&grid, settings.preset, &store, &edit)?;
    let masked_lm = plans.open_masked_lm(&grid, &store)?;
    let (names, needs) = (plans.models(), plans.needs(&grid));
    let seq2seq = needs.seq2seq.then(|| store.open_seq2seq(&names.seq2seq)).transpose()?;
    let tagger = store.open(&names.tagger)?;
    let models = ExperimentModels { masked_lm, tagger, seq2seq, vectors: None };
    let device = settings.open_device()?;
    Ok(ExperimentRunner::new(grid, languages, plans, models, device.arithmetic())?)
}

fn run_cells(
    runner: &ExperimentRunner,
    cells: &[Cell],
    ledger: &mut Ledger,
    settings: &Settings,
    reporter: Reporter,
) -> Result<(), ErrorReport> {
    let state = Mutex::new((reporter, ProgressMeter::default()));
    let on_progress = |cell: &Cell, progress: Progress<'_>| {
        let mut state = state.lock().unwrap_or_else(PoisonError::into_inner);
        let (reporter, meter) = &mut *state;
        let (done, of) = meter.record(cell, progress).unwrap_or_default();
        reporter.on_progress("training taggers", done, of)
    };
    let open = || -> Result<Device, ErrorReport> { settings.open_own_device() };
    runner.run(cells, ledger, NonZeroUsize::MIN, &open, &on_progress)?;
    Ok(())
}
