//! Where a training stands, and how that is kept on disk.

use std::fs;
use std::path::{Path, PathBuf};

use melm_nn::optim::Adam;
use melm_nn::params::Parameters;
use melm_nn::weights::KeptParameters;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::{Evaluation, Fitted, Loss, Measure};
use crate::Error;
use crate::files::write_whole;

/// What one epoch brought.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Epoch {
    /// Its number, from 1.
    pub epoch: u64,
    /// Updates made by its end.
    pub step: u64,
    /// Mean training loss over it.
    pub loss: f64,
    /// Micro-F1 on dev, where it was measured.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dev_f1: Option<f64>,
    /// Mean loss on dev, where it was measured.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dev_loss: Option<f64>,
    /// Whether it is the best so far.
    pub is_best: bool,
}

/// The best evaluation so far.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Best {
    /// The epoch, from 1.
    pub epoch: u64,
    /// Its value on dev.
    pub value: f64,
}

/// All of a training but its numbers.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct Course {
    pub(super) n_steps: u64,
    /// Losses of the epoch under way.
    pub(super) loss: Loss,
    pub(super) best: Option<Best>,
    /// Evaluations since the best.
    n_waited: u64,
    pub(super) epochs: Vec<Epoch>,
}

impl Loss {
    pub(super) fn add(&mut self, other: Self) {
        self.sum += other.sum;
        self.n += other.n;
    }
}

impl Course {
    /// Closes the epoch; says whether it is the best so far.
    pub(super) fn end_epoch(&mut self, epoch: u64, evaluation: Option<Evaluation>) -> bool {
        let is_best =
            evaluation.is_some_and(|found| self.best.is_none_or(|best| found.beats(best.value)));
        let measured =
            |measure| evaluation.filter(|found| found.measure == measure).map(|found| found.value);
        let number = epoch + 1;
        if let (true, Some(found)) = (is_best, evaluation) {
            self.best = Some(Best { epoch: number, value: found.value });
            self.n_waited = 0;
        } else if evaluation.is_some() {
            self.n_waited += 1;
        }
        self.epochs.push(Epoch {
            epoch: number,
            step: self.n_steps,
            loss: self.loss.mean(),
            dev_f1: measured(Measure::F1),
            dev_loss: measured(Measure::Loss),
            is_best,
        });
        self.loss = Loss::default();
        is_best
    }

    pub(super) fn has_stopped(&self, patience: u64) -> bool {
        patience > 0 && self.n_waited >= patience
    }
}

/// The files of a training under way; without a folder only its best parameters, in memory.
pub(super) struct Store {
    folder: Option<PathBuf>,
    best: KeptParameters,
}

impl Store {
    pub(super) fn new(folder: Option<&Path>) -> Self {
        Self { folder: folder.map(Path::to_path_buf), best: KeptParameters::default() }
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

    /// The parameters of a training that is over, and how it went.
    pub(super) fn restore_done(
        &self,
        parameters: &mut Parameters,
    ) -> Result<Option<Fitted>, Error> {
        let Some(path) = self.done().filter(|path| path.exists()) else { return Ok(None) };
        let note = parameters.restore_trained(&path)?;
        // The run that finished it may have been killed before it had cleared up.
        self.clear_up()?;
        Ok(Some(from_note(&note, path)?))
    }

    /// Keeps the parameters that the training ends with, and nothing else.
    pub(super) fn finish(&self, parameters: &Parameters, fitted: &Fitted) -> Result<(), Error> {
        let Some(path) = self.done() else { return Ok(()) };
        parameters.save_trained(&path, &to_note(fitted))?;
        self.clear_up()
    }

    /// Removes what only a training under way needs, and what a kill left of it half written.
    fn clear_up(&self) -> Result<(), Error> {
        let whole = [self.state(), self.best()].into_iter().flatten();
        let parts = whole.clone().map(|path| path.with_extension("safetensors.part"));
        for path in whole.chain(parts) {
            match fs::remove_file(&path) {
                Err(source) if source.kind() != std::io::ErrorKind::NotFound => {
                    return Err(Error::Write { path, source });
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Goes back to the last state written; to the beginning if there is none.
    pub(super) fn restore(
        &self,
        adam: &mut Adam,
        parameters: &mut Parameters,
    ) -> Result<Course, Error> {
        let Some(folder) = &self.folder else { return Ok(Course::default()) };
        fs::create_dir_all(folder)
            .map_err(|source| Error::Write { path: folder.clone(), source })?;
        let Some(path) = self.state().filter(|path| path.exists()) else {
            return Ok(Course::default());
        };
        let note = adam.restore(parameters, &path)?;
        from_note(&note, path)
    }

    pub(super) fn save(
        &self,
        adam: &Adam,
        parameters: &Parameters,
        course: &Course,
    ) -> Result<(), Error> {
        let Some(path) = self.state() else { return Ok(()) };
        Ok(adam.save(parameters, &path, &to_note(course))?)
    }

    pub(super) fn save_best(&mut self, parameters: &Parameters) -> Result<(), Error> {
        match self.best() {
            Some(path) => parameters.save_trained(&path, "")?,
            None => parameters.keep_trained(&mut self.best)?,
        }
        Ok(())
    }

    pub(super) fn restore_best(&self, parameters: &mut Parameters) -> Result<(), Error> {
        match self.best() {
            Some(path) => drop(parameters.restore_trained(&path)?),
            None => parameters.put_trained(&self.best)?,
        }
        Ok(())
    }

    /// One line an epoch. Written anew each time, so that it never tells of an epoch that a killed run did not keep.
    pub(super) fn write_metrics(&self, stage: &str, course: &Course) -> Result<(), Error> {
        let Some(path) = self.file("metrics.jsonl") else { return Ok(()) };
        let lines = course.epochs.iter().map(|epoch| metrics_line(stage, epoch));
        write_whole(&path, lines.collect::<String>().as_bytes())
    }
}

/// TOML rather than JSON: its numbers are read back to the last bit.
fn to_note(value: &impl Serialize) -> String {
    toml::to_string(value).expect("a plain struct is a table")
}

fn from_note<T: for<'de> Deserialize<'de>>(note: &str, path: PathBuf) -> Result<T, Error> {
    toml::from_str(note).map_err(|_| melm_nn::Error::State { path }.into())
}

fn metrics_line(stage: &str, epoch: &Epoch) -> String {
    let mut line = json!({"stage": stage});
    if let (Some(line), serde_json::Value::Object(values)) = (line.as_object_mut(), json!(epoch)) {
        line.extend(values);
    }
    format!("{line}\n")
}
