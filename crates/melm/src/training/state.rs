//! The state of a training run, and its files.

use std::fmt;
use std::path::{Path, PathBuf};

use melm_nn::optim::Adam;
use melm_nn::params::Parameters;
use melm_nn::weights::ParameterSnapshot;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::{Evaluation, Loss, Metric, TrainingOutcome};
use crate::Error;
use crate::files::{create_folder, remove, write_sealed};

/// The metrics of one epoch: a line of `metrics.jsonl`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct EpochMetrics {
    /// The number of the epoch, from 1.
    pub epoch: u64,
    /// The number of updates at the end of the epoch.
    pub step: u64,
    /// The mean training loss.
    pub loss: f64,
    /// Micro-F1 on dev, if it was measured.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dev_f1: Option<f64>,
    /// The mean loss on dev, if it was measured.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dev_loss: Option<f64>,
    /// True if this epoch is the best so far.
    pub is_best: bool,
}

impl fmt::Display for EpochMetrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "epoch {}: loss {:.3}", self.epoch, self.loss)?;
        match (self.dev_f1, self.dev_loss) {
            (Some(f1), _) => write!(f, ", dev F1 {:.2}", f1 * 100.0)?,
            (_, Some(loss)) => write!(f, ", dev loss {loss:.3}")?,
            _ => {}
        }
        f.write_str(if self.is_best { " (best)" } else { "" })
    }
}

/// The best evaluation so far.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct BestEvaluation {
    /// The epoch, from 1.
    pub epoch: u64,
    /// The value on dev: F1 or mean loss.
    pub value: f64,
}

/// The state of a training run, except the parameters and the moments of the optimizer.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct TrainingState {
    pub(super) n_steps: u64,
    /// The losses of the current epoch so far.
    pub(super) loss: Loss,
    pub(super) best: Option<BestEvaluation>,
    /// The number of evaluations since the best one.
    n_waited: u64,
    /// True from an update until the model has been evaluated, if that was due.
    #[serde(default)]
    pub(super) awaits_evaluation: bool,
    pub(super) epochs: Vec<EpochMetrics>,
}

impl TrainingState {
    /// Records the end of an epoch (counted from 0). Returns true if this epoch is the best so far.
    pub(super) fn end_epoch(&mut self, epoch: u64, evaluation: Option<Evaluation>) -> bool {
        let is_best =
            evaluation.is_some_and(|found| self.best.is_none_or(|best| found.beats(best.value)));
        let measured =
            |metric| evaluation.filter(|found| found.metric == metric).map(|found| found.value);
        let number = epoch + 1;
        if let (true, Some(found)) = (is_best, evaluation) {
            self.best = Some(BestEvaluation { epoch: number, value: found.value });
            self.n_waited = 0;
        } else if evaluation.is_some() {
            self.n_waited += 1;
        }
        self.epochs.push(EpochMetrics {
            epoch: number,
            step: self.n_steps,
            loss: self.loss.mean(),
            dev_f1: measured(Metric::F1),
            dev_loss: measured(Metric::Loss),
            is_best,
        });
        self.loss = Loss::default();
        is_best
    }

    pub(super) fn has_stopped(&self, patience: u64) -> bool {
        patience > 0 && self.n_waited >= patience
    }
}

/// Returns the outcome of the finished training in the folder of a stage, or `None` if there is none. The parameters are
/// not loaded.
///
/// # Errors
/// If the file is damaged, or was not written at the end of a training.
pub fn read_outcome(folder: &Path) -> Result<Option<TrainingOutcome>, Error> {
    let store = CheckpointStore::new(Some(folder));
    let Some(path) = store.done().filter(|path| path.exists()) else { return Ok(None) };
    let note = melm_nn::weights::read_note(&path)?;
    from_note(&note, path).map(Some)
}

/// The files of a training run. Without a folder, only the best parameters are stored, in memory.
pub(super) struct CheckpointStore {
    folder: Option<PathBuf>,
    best: ParameterSnapshot,
}

impl CheckpointStore {
    pub(super) fn new(folder: Option<&Path>) -> Self {
        Self { folder: folder.map(Path::to_path_buf), best: ParameterSnapshot::default() }
    }

    fn file(&self, name: &str) -> Option<PathBuf> {
        self.folder.as_ref().map(|folder| folder.join(name))
    }

    fn state(&self) -> Option<PathBuf> {
        self.file("state.safetensors")
    }

    fn best(&self) -> Option<PathBuf> {
        self.file("best.safetensors")
    }

    fn done(&self) -> Option<PathBuf> {
        self.file("done.safetensors")
    }

    /// Restores the parameters of a finished training run. Returns its outcome, or `None` if the run has not
    /// finished.
    pub(super) fn restore_done(
        &self,
        parameters: &mut Parameters,
    ) -> Result<Option<TrainingOutcome>, Error> {
        let Some(path) = self.done().filter(|path| path.exists()) else { return Ok(None) };
        let note = parameters.restore_trained(&path)?;
        // The earlier process may have been killed after it finished training and before it removed its temporary
        // files.
        self.remove_temporary_files()?;
        Ok(Some(from_note(&note, path)?))
    }

    /// Saves the final parameters and removes all other files.
    pub(super) fn finish(
        &self,
        parameters: &Parameters,
        outcome: &TrainingOutcome,
    ) -> Result<(), Error> {
        let Some(path) = self.done() else { return Ok(()) };
        parameters.save_trained(&path, &to_note(outcome))?;
        self.remove_temporary_files()
    }

    /// Removes the files that only an unfinished training run needs, and incomplete files that a killed process left
    /// behind.
    fn remove_temporary_files(&self) -> Result<(), Error> {
        let whole = [self.state(), self.best()].into_iter().flatten();
        let parts = whole.clone().map(|path| path.with_extension("safetensors.part"));
        whole.chain(parts).try_for_each(|path| remove(&path))
    }

    /// Restores the last saved state. Returns the initial state if nothing was saved.
    pub(super) fn restore(
        &self,
        adam: &mut Adam,
        parameters: &mut Parameters,
    ) -> Result<TrainingState, Error> {
        let Some(folder) = &self.folder else { return Ok(TrainingState::default()) };
        create_folder(folder)?;
        let Some(path) = self.state().filter(|path| path.exists()) else {
            return Ok(TrainingState::default());
        };
        let note = adam.restore(parameters, &path)?;
        from_note(&note, path)
    }

    pub(super) fn save(
        &self,
        adam: &Adam,
        parameters: &Parameters,
        state: &TrainingState,
    ) -> Result<(), Error> {
        let Some(path) = self.state() else { return Ok(()) };
        Ok(adam.save(parameters, &path, &to_note(state))?)
    }

    pub(super) fn save_best(&mut self, parameters: &Parameters) -> Result<(), Error> {
        match self.best() {
            Some(path) => parameters.save_trained(&path, "")?,
            None => parameters.snapshot_trained(&mut self.best)?,
        }
        Ok(())
    }

    pub(super) fn restore_best(&self, parameters: &mut Parameters) -> Result<(), Error> {
        match self.best() {
            Some(path) => drop(parameters.restore_trained(&path)?),
            None => parameters.restore_snapshot(&self.best)?,
        }
        Ok(())
    }

    /// Writes one line for each epoch. The whole file is written again each time: epochs after the last saved state, which
    /// a resumed run trains again, are then listed once.
    pub(super) fn write_metrics(&self, stage: &str, epochs: &[EpochMetrics]) -> Result<(), Error> {
        let Some(path) = self.file("metrics.jsonl") else { return Ok(()) };
        let lines = epochs.iter().map(|epoch| metrics_line(stage, epoch));
        write_sealed(&path, &lines.collect::<String>())
    }
}

/// Serialises to TOML, because numbers are read back from TOML without change. From JSON, the last bit could differ.
fn to_note(value: &impl Serialize) -> String {
    toml::to_string(value).expect("a plain struct is a table")
}

fn from_note<T: for<'de> Deserialize<'de>>(note: &str, path: PathBuf) -> Result<T, Error> {
    toml::from_str(note).map_err(|_| melm_nn::Error::State { path }.into())
}

fn metrics_line(stage: &str, epoch: &EpochMetrics) -> String {
    let mut line = json!({"stage": stage});
    if let (Some(line), serde_json::Value::Object(values)) = (line.as_object_mut(), json!(epoch)) {
        line.extend(values);
    }
    format!("{line}\n")
}
