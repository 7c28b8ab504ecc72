//! Parts of a grid: cells with chosen coordinates, and shards.

use std::str::FromStr;

use crate::{Cell, Error};

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

/// One of several parts of a grid that are run separately, written as `1/4`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shard {
    /// The number of the shard, from 1.
    pub number: usize,
    /// The number of all shards.
    pub of: usize,
}

impl Shard {
    /// Returns the shard's part of the cells. Cells with the same gold stay together.
    pub fn cells(self, cells: &[Cell]) -> Vec<Cell> {
        let groups = cells.chunk_by(Cell::shares_gold_with).enumerate();
        let own = groups.filter(|(at, _)| at % self.of == self.number - 1);
        own.flat_map(|(_, group)| group.to_vec()).collect()
    }

    /// Returns the file name of a shard's ledger, or of the ledger of a run without shards.
    pub fn ledger_name(shard: Option<Self>) -> String {
        match shard {
            Some(Self { number, of }) => format!("ledger-{number}-of-{of}.jsonl"),
            None => "ledger.jsonl".to_owned(),
        }
    }
}

impl FromStr for Shard {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let parsed = text.split_once('/').and_then(|(i, n)| {
            let (number, of) = (i.parse().ok()?, n.parse().ok()?);
            (1..=of).contains(&number).then_some(Self { number, of })
        });
        parsed
            .ok_or_else(|| format!("`{text}` is not a shard: expected `1/4` for the first of four"))
    }
}
