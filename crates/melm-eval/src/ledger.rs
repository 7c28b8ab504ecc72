//! Ledgers: files with one line for each finished cell.

use std::collections::BTreeMap;
use std::path::Path;

use melm::augment::DraftSummary;
use melm::tagger::TaggerScores;
use melm_text::Scores;
use melm_text::score::Counts;
use serde::{Deserialize, Serialize};

use crate::lines::{LineFile, read_lines};
use crate::{Cell, Error, PickResult, TextResult};

/// The beginning of the names of ledgers.
const LEDGER: &str = "ledger";

/// A finished cell: its scores, and how they were computed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LedgerLine {
    /// The key of the cell: the digest of everything that affects its result.
    pub key: String,
    /// The version of the program.
    pub melm: String,
    /// The coordinates of the cell.
    #[serde(flatten)]
    pub cell: Cell,
    /// The score on the dev set, on which the best epoch was also chosen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dev: Option<F1>,
    /// The scores on the test sets, by language. Empty if the test sets were not opened.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub test: BTreeMap<String, F1>,
    /// The number of sentences in the training set.
    pub n_train: usize,
    /// Counts of drafts by verdict, if there were any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub drafts: Option<DraftSummary>,
    /// The labelled text, if there was any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub labelled: Option<TextResult>,
    /// The picked sentences, for the system `picked`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub picked: Option<PickResult>,
    /// The number of updates of the tagger.
    pub updates: u64,
    /// The epoch with the best dev score, whose parameters were used. `None` if those of the last epoch were used.
    pub best_epoch: Option<u64>,
    /// The time that the cell took.
    pub seconds: Seconds,
    /// The fingerprints of the data, by language: train, dev, and test if it was scored.
    pub data: BTreeMap<String, Vec<String>>,
    /// The name of the plan in the folder `plans` beside the ledger: the beginning of the plan's fingerprint.
    pub plan: String,
    /// The names of the masked language model and of the tagger's encoder.
    pub models: [String; 2],
    /// The name of the pretrained encoder-decoder, if the method fine-tuned one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seq2seq: Option<String>,
    /// The number of parameters of the masked language model; 0 if the grid has none.
    #[serde(default)]
    pub n_parameters: usize,
    /// The arithmetic of the device.
    pub device: String,
}

/// The score of a tagger on one set.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct F1 {
    /// Micro-F1 in percent, rounded. The counts below are exact.
    pub f1: f64,
    /// The number of gold, predicted and correct mentions by entity type.
    pub by_type: BTreeMap<String, [u64; 3]>,
}

/// The time that a cell took, in seconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Seconds {
    /// Making and judging drafts. Cells that differ only in the budget share their drafts.
    pub drafts: f64,
    /// Training the tagger.
    pub train: f64,
    /// Scoring the tagger.
    pub score: f64,
}

/// The scores of a cell and how they were computed.
pub(crate) struct Scored {
    pub(crate) dev: Option<F1>,
    pub(crate) test: BTreeMap<String, F1>,
    pub(crate) updates: u64,
    pub(crate) best_epoch: Option<u64>,
    pub(crate) train_seconds: f64,
    pub(crate) score_seconds: f64,
}

impl F1 {
    /// Creates an `F1` from the counts of a scored tagger.
    pub fn from_scored(scored: &TaggerScores) -> Self {
        Self::from_scores(&scored.scores)
    }

    /// Creates an `F1` from counts.
    pub(crate) fn from_scores(scores: &Scores) -> Self {
        let name = |t| scores.types().name(t).to_owned();
        let counts = scores.by_type().into_iter();
        let by_type = counts.map(|(t, c)| (name(t), [c.gold, c.predicted, c.correct])).collect();
        let mut f1 = Self { f1: 0.0, by_type };
        f1.f1 = (f1.percent() * 100.0).round() / 100.0;
        f1
    }

    /// Micro-F1 in percent, computed from the counts.
    pub fn percent(&self) -> f64 {
        // A damaged ledger can have any counts.
        let sum =
            |at: usize| self.by_type.values().map(|counts| counts[at]).fold(0, u64::saturating_add);
        100.0 * Counts { gold: sum(0), predicted: sum(1), correct: sum(2) }.rates().f1
    }
}

/// The lines of all ledgers in a folder, and the file that new lines are added to.
pub struct Ledger {
    lines: Vec<LedgerLine>,
    /// `None` for a ledger in memory.
    file: Option<LineFile>,
}

impl Ledger {
    /// Reads the ledgers of a folder (`ledger*.jsonl`, of all shards) and opens the one called `name` for adding lines.
    ///
    /// Creates folder and file if they do not exist. Removes an incomplete last line, which a killed run may leave. Fails if
    /// another process has the file open, or if a line cannot be parsed.
    pub fn open(dir: &Path, name: &str) -> Result<Self, Error> {
        let file = LineFile::open(dir, name)?;
        Ok(Self { lines: Self::read(dir)?, file: Some(file) })
    }

    /// Returns the lines of all ledgers in a folder, or no lines if there is no such folder. Writes nothing.
    pub fn read(dir: &Path) -> Result<Vec<LedgerLine>, Error> {
        let mut lines = Vec::new();
        for line in read_lines(dir, LEDGER)? {
            put(&mut lines, line);
        }
        Ok(lines)
    }

    /// Creates a ledger in memory, without a file.
    pub fn in_memory() -> Self {
        Self { lines: Vec::new(), file: None }
    }

    /// All lines. If several lines have the same cell and key, only the one with the most test sets is kept.
    pub fn lines(&self) -> &[LedgerLine] {
        &self.lines
    }

    /// Returns the line of a cell with this key that was scored on these test sets.
    pub fn find(&self, cell: &Cell, key: &str, tests: &[&str]) -> Option<&LedgerLine> {
        self.lines.iter().find(|line| line.cell == *cell && line.has(key, tests))
    }

    /// Returns a line of any cell with this key that was scored on these test sets.
    pub fn find_by_key(&self, key: &str, tests: &[&str]) -> Option<&LedgerLine> {
        self.lines.iter().find(|line| line.has(key, tests))
    }

    /// Adds a line, writes it to the file, and waits until it is on the disk.
    pub fn add(&mut self, line: LedgerLine) -> Result<(), Error> {
        if let Some(file) = &mut self.file {
            file.add(&line)?;
        }
        put(&mut self.lines, line);
        Ok(())
    }
}

impl LedgerLine {
    /// Returns true if the line has this key and scores on all of these test sets.
    pub(crate) fn has(&self, key: &str, tests: &[&str]) -> bool {
        self.key == key && tests.iter().all(|test| self.test.contains_key(*test))
    }
}

/// Adds a line at the end. If an old line has the same cell and key, only the one with more test sets is kept.
fn put(lines: &mut Vec<LedgerLine>, line: LedgerLine) {
    let old = lines.iter().position(|old| old.key == line.key && old.cell == line.cell);
    let old = old.map(|at| lines.remove(at)).filter(|old| old.test.len() > line.test.len());
    lines.push(old.unwrap_or(line));
}
