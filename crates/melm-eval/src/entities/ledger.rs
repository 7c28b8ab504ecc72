//! The ledger of counted entities: one line for each cell.

use std::path::Path;

use melm::shard::Shard;
use serde::{Deserialize, Serialize};

use super::Entities;
use crate::lines::{LineFile, read_lines};
use crate::{Cell, CellFilter, Error};

/// The beginning of the names of these ledgers.
const ENTITIES: &str = "entities";

/// Returns the file name of a shard's ledger of entities, or of that of a run without shards.
pub fn entity_ledger_name(shard: Option<Shard>) -> String {
    match shard {
        Some(shard) => format!("{ENTITIES}-{}-of-{}.jsonl", shard.number(), shard.count()),
        None => format!("{ENTITIES}.jsonl"),
    }
}

/// The counted entities of one training set.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct EntityLine {
    /// The digest of everything that affects the counts.
    pub key: String,
    /// The coordinates of the cell whose training set was counted.
    #[serde(flatten)]
    pub cell: Cell,
    /// The counts.
    #[serde(flatten)]
    pub entities: Entities,
    /// The number of sentences in the training set.
    pub n_train: usize,
    /// The time of making and counting the training set, in seconds.
    pub seconds: f64,
    /// The name of the tagger's encoder, which is also the encoder of the oracle.
    pub model: String,
    /// The arithmetic of the device.
    pub device: String,
}

/// The lines of all ledgers of entities in a folder, and the file that new lines are added to.
pub struct EntityLedger {
    lines: Vec<EntityLine>,
    file: LineFile,
}

impl EntityLedger {
    /// Reads the ledgers of a folder (`entities*.jsonl`, of all shards) and opens the one called `name` for adding lines.
    /// Fails if another process has the file open, or if a line cannot be parsed.
    pub fn open(dir: &Path, name: &str) -> Result<Self, Error> {
        let file = LineFile::open(dir, name)?;
        Ok(Self { lines: read_lines(dir, ENTITIES)?, file })
    }

    /// Returns the lines of all ledgers of entities in a folder that pass all filters. If a cell has several lines, returns
    /// the last one. Fails if no line is left.
    pub fn read(dir: &Path, filters: &[CellFilter]) -> Result<Vec<EntityLine>, Error> {
        let lines: Vec<EntityLine> = read_lines(dir, ENTITIES)?;
        if lines.is_empty() {
            return Err(Error::NoLedger { dir: dir.to_path_buf() });
        }
        let mut last: Vec<EntityLine> = Vec::new();
        for line in lines {
            if filters.iter().all(|filter| filter.allows(&line.cell)) {
                last.retain(|other| other.cell != line.cell);
                last.push(line);
            }
        }
        if last.is_empty() { Err(Error::NoLines) } else { Ok(last) }
    }

    /// Returns true if a line has this key.
    pub(super) fn has(&self, key: &str) -> bool {
        self.lines.iter().any(|line| line.key == key)
    }

    /// Adds a line and writes it to the file.
    pub(super) fn add(&mut self, line: EntityLine) -> Result<(), Error> {
        self.file.add(&line)?;
        self.lines.push(line);
        Ok(())
    }
}
