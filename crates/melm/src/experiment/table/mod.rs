//! Tables from a ledger: means, spreads, paired differences and their intervals, the paper's values beside them.

mod rows;
mod write;

pub use rows::{Row, Rows};
pub use write::{csv, latex, markdown};

use std::collections::BTreeMap;

use super::{Line, System};
use crate::fit::Budget;

/// Which table of the paper.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Table {
    /// Taggers of one language, scored on it (Table 1, left).
    Mono,
    /// Taggers of one language, scored on others (Table 1, right).
    Cross,
    /// Taggers of several languages, scored on each (Table 2).
    Multi,
}

/// What was scored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Split {
    /// The dev set: what choices are made by.
    Dev,
    /// The test set.
    Test,
}

impl Split {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Dev => "dev",
            Self::Test => "test",
        }
    }
}

/// A score of one tagger on one set.
#[derive(Clone, Debug)]
struct Observation<'l> {
    column: String,
    size: usize,
    draw: u64,
    seed: u64,
    method: System,
    budget: Budget,
    variant: &'l str,
    f1: f64,
}

impl Table {
    /// The names, in the order of `--help`.
    pub const NAMES: [(&'static str, Self); 3] =
        [("mono", Self::Mono), ("cross", Self::Cross), ("multi", Self::Multi)];

    /// What a mean over columns is paired over. Columns that one tagger brought forth are not independent.
    pub fn unit(self) -> &'static str {
        match self {
            Self::Mono => "a draw of a language, its seeds averaged",
            Self::Cross | Self::Multi => "a draw, its seeds and its columns averaged",
        }
    }

    /// The scores of a line that belong to the table.
    fn observe(self, line: &Line, split: Split) -> Vec<Observation<'_>> {
        let cell = &line.cell;
        let is_joined = cell.language.contains('+');
        let own = |column: String, f1: f64| Observation {
            column,
            size: cell.size,
            draw: cell.draw,
            seed: cell.seed,
            method: cell.method,
            budget: cell.budget,
            variant: &cell.variant,
            f1,
        };
        let tests = line.test.iter();
        match (self, split) {
            (Self::Mono, Split::Dev) if !is_joined => {
                vec![own(cell.language.clone(), line.dev.percent())]
            }
            (Self::Mono, Split::Test) if !is_joined => tests
                .filter(|(name, _)| **name == cell.language)
                .map(|(name, f1)| own(name.clone(), f1.percent()))
                .collect(),
            (Self::Cross, Split::Test) if !is_joined => tests
                .filter(|(name, _)| **name != cell.language)
                .map(|(name, f1)| own(format!("{}→{name}", cell.language), f1.percent()))
                .collect(),
            (Self::Multi, Split::Dev) if is_joined => {
                vec![own(cell.language.clone(), line.dev.percent())]
            }
            (Self::Multi, Split::Test) if is_joined => {
                tests.map(|(name, f1)| own(name.clone(), f1.percent())).collect()
            }
            _ => Vec::new(),
        }
    }

    /// The rows of the table that these lines give. The paper's values are of test sets.
    pub fn rows(self, lines: &[Line], split: Split, paper: &super::Paper) -> Rows {
        let observations = lines.iter().flat_map(|line| self.observe(line, split)).collect();
        let empty = BTreeMap::new();
        Rows::new((self, split), observations, if split == Split::Test { paper } else { &empty })
    }
}
