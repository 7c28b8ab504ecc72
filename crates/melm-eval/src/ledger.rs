//! The ledger: one line a cell, with its scores and where they come from.

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::Write;
use std::path::{Path, PathBuf};

use melm_text::score::Counts;
use serde::{Deserialize, Serialize};

use super::Cell;
use crate::Error;
use melm::augment::DraftSummary;
use melm::tagger::TaggerScores;

/// A finished cell.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Line {
    /// Stands for everything that can change the result.
    pub key: String,
    /// The version that ran it.
    pub melm: String,
    /// Its coordinates.
    #[serde(flatten)]
    pub cell: Cell,
    /// On the dev set, which chose the epoch; none without one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dev: Option<F1>,
    /// On the test sets, by language; none if choices are still being made.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub test: BTreeMap<String, F1>,
    /// Sentences it was trained on.
    pub n_train: usize,
    /// What became of the drafts, if there were any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub drafts: Option<DraftSummary>,
    /// Updates of the tagger.
    pub updates: u64,
    /// Its best epoch on dev, if that was kept.
    pub best_epoch: Option<u64>,
    /// What it took.
    pub seconds: Seconds,
    /// The fingerprints of the data, by language: train, dev, and test if it was scored.
    pub data: BTreeMap<String, Vec<String>>,
    /// The fingerprint of the whole plan, which lies beside the ledger under this name.
    pub plan: String,
    /// The models: of the masked language model and of the tagger.
    pub models: [String; 2],
    /// Numbers of the masked language model; 0 if the grid has none.
    #[serde(default)]
    pub n_parameters: usize,
    /// Where it ran.
    pub device: String,
}

/// Mentions counted on one set.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct F1 {
    /// Micro-F1 in percent, rounded; the counts are exact.
    pub f1: f64,
    /// By entity type: mentions in gold, predicted, and both.
    pub by_type: BTreeMap<String, [u64; 3]>,
}

/// Seconds of a cell.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Seconds {
    /// Making and judging drafts; shared by the budgets of a cell.
    pub drafts: f64,
    /// Training the tagger.
    pub train: f64,
    /// Scoring it.
    pub score: f64,
}

impl F1 {
    /// The counts of an examination.
    pub fn of(scored: &TaggerScores) -> Self {
        let name = |t| scored.scores.types().name(t).to_owned();
        let counts = scored.scores.by_type().into_iter();
        let by_type = counts.map(|(t, c)| (name(t), [c.gold, c.predicted, c.correct])).collect();
        let mut f1 = Self { f1: 0.0, by_type };
        f1.f1 = (f1.percent() * 100.0).round() / 100.0;
        f1
    }

    /// Micro-F1 in percent, from the counts.
    pub fn percent(&self) -> f64 {
        let sum = |at: usize| self.by_type.values().map(|counts| counts[at]).sum();
        100.0 * Counts { gold: sum(0), predicted: sum(1), correct: sum(2) }.rates().f1
    }
}

/// The lines of a folder, and the file that new ones go to.
pub struct Ledger {
    path: PathBuf,
    lines: Vec<Line>,
    /// None in memory.
    file: Option<File>,
}

impl Ledger {
    /// Opens the ledgers of a folder (`ledger*.jsonl`, of all shards), to add to the one called `name`.
    ///
    /// What a killed run left of a line is removed from it.
    pub fn open(dir: &Path, name: &str) -> Result<Self, Error> {
        fs::create_dir_all(dir).map_err(|source| Error::Write { path: dir.into(), source })?;
        let path = dir.join(name);
        let failed = |source| Error::Write { path: path.clone(), source };
        let mut file = OpenOptions::new();
        let mut file = file.create(true).read(true).append(true).open(&path).map_err(failed)?;
        // Where a file system has no locks, two at once do the same work twice.
        if let Err(TryLockError::WouldBlock) = file.try_lock() {
            return Err(Error::LedgerInUse { path });
        }
        let text = fs::read(&path).map_err(failed)?;
        let whole = text.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
        if whole < text.len() {
            file.set_len(whole as u64).map_err(failed)?;
            file.flush().map_err(failed)?;
        }
        Ok(Self { lines: read_all(dir)?, path, file: Some(file) })
    }

    /// The lines of all ledgers in a folder; none if there is no folder. Nothing is written.
    pub fn read(dir: &Path) -> Result<Vec<Line>, Error> {
        if dir.is_dir() { read_all(dir) } else { Ok(Vec::new()) }
    }

    /// A ledger that nothing is kept of.
    pub fn in_memory() -> Self {
        Self { path: PathBuf::new(), lines: Vec::new(), file: None }
    }

    /// All lines; of several with the same key and cell, the one with most test sets.
    pub fn lines(&self) -> &[Line] {
        &self.lines
    }

    /// The line of a cell, if its key is the same and it was scored on these test sets.
    pub fn find(&self, cell: &Cell, key: &str, tests: &[&str]) -> Option<&Line> {
        self.lines.iter().find(|line| line.cell == *cell && line.has(key, tests))
    }

    /// A line of any cell that has the same key: the same work, under other coordinates.
    pub fn twin(&self, key: &str, tests: &[&str]) -> Option<&Line> {
        self.lines.iter().find(|line| line.has(key, tests))
    }

    /// Adds a line, whole or not at all.
    pub fn add(&mut self, line: Line) -> Result<(), Error> {
        let text = serde_json::to_string(&line).expect("a line is JSON") + "\n";
        if let Some(file) = &mut self.file {
            let written = file.write_all(text.as_bytes()).and_then(|()| file.flush());
            written.map_err(|source| Error::Write { path: self.path.clone(), source })?;
        }
        put(&mut self.lines, line);
        Ok(())
    }
}

impl Line {
    pub(crate) fn has(&self, key: &str, tests: &[&str]) -> bool {
        self.key == key && tests.iter().all(|test| self.test.contains_key(*test))
    }
}

/// Adds a line as the last; one of the same cell and key gives way unless it says more.
fn put(lines: &mut Vec<Line>, line: Line) {
    let old = lines.iter().position(|old| old.key == line.key && old.cell == line.cell);
    let old = old.map(|at| lines.remove(at)).filter(|old| old.test.len() > line.test.len());
    lines.push(old.unwrap_or(line));
}

/// What is wrong, without a place: that of a line within itself is always the first.
fn message(error: &serde_json::Error) -> String {
    let text = error.to_string();
    text.rfind(" at line ").map_or(text.clone(), |at| text[..at].to_owned())
}

/// The lines of all ledgers in a folder, in the order of their names.
fn read_all(dir: &Path) -> Result<Vec<Line>, Error> {
    let failed = |source| Error::Read { path: dir.to_path_buf(), source };
    let mut paths = Vec::new();
    for entry in fs::read_dir(dir).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        let is_ledger = name.starts_with("ledger")
            && path.extension().is_some_and(|extension| extension == "jsonl");
        paths.extend(is_ledger.then_some(path));
    }
    paths.sort();
    let mut lines = Vec::new();
    for path in paths {
        let bytes = fs::read(&path).map_err(|source| Error::Read { path: path.clone(), source })?;
        // Another shard may be writing its last line right now.
        let whole = bytes.iter().rposition(|byte| *byte == b'\n').unwrap_or(0);
        let lines_of = bytes[..whole].split(|byte| *byte == b'\n').enumerate();
        for (at, text) in lines_of.filter(|(_, text)| !text.trim_ascii().is_empty()) {
            let line = serde_json::from_slice(text).map_err(|error| Error::LedgerLine {
                path: path.clone(),
                line: at + 1,
                message: format!("column {}: {}", error.column(), message(&error)),
            })?;
            put(&mut lines, line);
        }
    }
    Ok(lines)
}
