//! Parts of a grid: cells with chosen coordinates, and shards.

use std::str::FromStr;

use melm::shard::Shard;

use crate::{Cell, Error, System};

/// A coordinate and the values it may have, written as `method=gold,melm`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CellFilter {
    coordinate: String,
    /// The values as one text, because the name of a variant may contain commas.
    text: String,
    values: Vec<String>,
}

impl CellFilter {
    /// Returns true if the cell has one of the values.
    pub fn allows(&self, cell: &Cell) -> bool {
        cell.coordinate(&self.coordinate)
            .is_some_and(|value| self.text == value || self.values.contains(&value))
    }

    /// Fails if no cell has one of the values. Such a value is most likely a typo.
    pub fn check<'c>(&self, cells: impl Iterator<Item = &'c Cell>) -> Result<(), Error> {
        let mut known: Vec<String> = Vec::new();
        for value in cells.filter_map(|cell| cell.coordinate(&self.coordinate)) {
            if !known.contains(&value) {
                known.push(value);
            }
        }
        if known.contains(&self.text) {
            return Ok(());
        }
        match self.values.iter().find(|value| !known.contains(value)) {
            None => Ok(()),
            Some(unknown) => Err(Error::FilterValue {
                coordinate: self.coordinate.clone(),
                value: unknown.clone(),
                known: known.join("`, `"),
            }),
        }
    }

    /// Returns the cells that pass all filters. Fails if a filter has a value that no cell has, or if no cell passes.
    pub fn select(filters: &[Self], mut cells: Vec<Cell>) -> Result<Vec<Cell>, Error> {
        for filter in filters {
            filter.check(cells.iter())?;
        }
        cells.retain(|cell| filters.iter().all(|filter| filter.allows(cell)));
        if cells.is_empty() { Err(Error::NoCells) } else { Ok(cells) }
    }
}

impl FromStr for CellFilter {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (coordinate, values) = text.split_once('=').unwrap_or((text, ""));
        if !Cell::COORDINATES.contains(&coordinate) || values.is_empty() {
            let names = Cell::COORDINATES.join(", ");
            return Err(format!("expected `NAME=VALUE,VALUE` with one of {names}"));
        }
        Ok(Self {
            coordinate: coordinate.to_owned(),
            text: values.to_owned(),
            values: values.split(',').map(|value| value.trim().to_owned()).collect(),
        })
    }
}

/// Returns a shard's part of the cells. Cells with the same gold stay together, and the groups are dealt out in turn. If
/// sentences are picked, all sizes of a draw stay together: a larger size continues where a smaller one ended.
pub fn shard_cells(cells: &[Cell], shard: Shard) -> Vec<Cell> {
    let is_own = |at: usize| at % shard.count() == shard.number() - 1;
    if !cells.iter().any(|cell| cell.method == System::Picked) {
        let groups = cells.chunk_by(Cell::shares_gold_with).enumerate();
        return groups
            .filter(|(at, _)| is_own(*at))
            .flat_map(|(_, group)| group.to_vec())
            .collect();
    }
    let mut draws: Vec<(&str, u64, u64)> = Vec::new();
    let mut own = Vec::new();
    for cell in cells {
        let draw = (cell.language.as_str(), cell.draw, cell.seed);
        let at = draws.iter().position(|known| *known == draw).unwrap_or(draws.len());
        if at == draws.len() {
            draws.push(draw);
        }
        own.extend(is_own(at).then(|| cell.clone()));
    }
    own
}

/// Returns the file name of a shard's ledger, or of the ledger of a run without shards.
pub fn ledger_name(shard: Option<Shard>) -> String {
    match shard {
        Some(shard) => format!("ledger-{}-of-{}.jsonl", shard.number(), shard.count()),
        None => "ledger.jsonl".to_owned(),
    }
}
