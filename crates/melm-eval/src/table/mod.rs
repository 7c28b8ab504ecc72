//! Tables from a ledger: means, spreads, paired differences and their intervals, the paper's values beside them.

mod costs;
mod figures;
mod rows;
mod write;

pub use costs::costs;
pub use figures::figures;
pub use rows::{Row, Rows};
pub use write::{csv, latex, markdown};

use std::collections::BTreeMap;

use super::{Line, System};
use melm::training::Budget;

/// Which table of the paper.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Table {
    /// Taggers of one language, scored on it (Table 1, left).
    Mono,
    /// Taggers of one language, scored on others (Table 1, right).
    Cross,
    /// Taggers of several languages, scored on each (Table 2).
    Multi,
    /// New entities against new contexts (Figure 1).
    AddEntity,
    /// The mask rates of fine-tuning and generation (Table 4).
    Masking,
    /// The number of rounds (Table 5).
    Rounds,
    /// Dev scores, time and parameters of MELM (Tables 6 to 8).
    Costs,
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
    pub const NAMES: [(&'static str, Self); 7] = [
        ("mono", Self::Mono),
        ("cross", Self::Cross),
        ("multi", Self::Multi),
        ("add-entity", Self::AddEntity),
        ("masking", Self::Masking),
        ("rounds", Self::Rounds),
        ("costs", Self::Costs),
    ];

    /// Its name.
    pub fn name(self) -> &'static str {
        let found = Self::NAMES.into_iter().find(|(_, table)| *table == self);
        found.expect("every table has a name").0
    }

    /// Whether the paper has dev scores for it.
    fn is_of_dev(self) -> bool {
        matches!(self, Self::Masking | Self::Rounds | Self::Costs)
    }

    /// What a mean over columns is paired over. Columns that one tagger brought forth are not independent.
    pub fn unit(self) -> &'static str {
        match self {
            Self::Cross | Self::Multi => "a draw, its seeds and its columns averaged",
            _ => "a draw of a language, its seeds averaged",
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
        let dev = line.dev.iter().map(|dev| own(cell.language.clone(), dev.percent()));
        match (self, split) {
            (Self::Masking | Self::Rounds | Self::Costs, Split::Dev) => dev.collect(),
            (Self::Mono | Self::AddEntity, Split::Dev) if !is_joined => dev.collect(),
            (Self::Mono | Self::AddEntity, Split::Test) if !is_joined => tests
                .filter(|(name, _)| **name == cell.language)
                .map(|(name, f1)| own(name.clone(), f1.percent()))
                .collect(),
            (Self::Cross, Split::Test) if !is_joined => tests
                .filter(|(name, _)| **name != cell.language)
                .map(|(name, f1)| own(format!("{}→{name}", cell.language), f1.percent()))
                .collect(),
            (Self::Multi, Split::Dev) if is_joined => dev.collect(),
            (Self::Multi, Split::Test) if is_joined => {
                tests.map(|(name, f1)| own(name.clone(), f1.percent())).collect()
            }
            _ => Vec::new(),
        }
    }

    /// The rows of the table that these lines give. The paper's values are of test sets, or of dev sets.
    pub fn rows(self, lines: &[Line], split: Split, paper: &super::Paper) -> Rows {
        let observations = lines.iter().flat_map(|line| self.observe(line, split)).collect();
        let empty = BTreeMap::new();
        let has_paper = (split == Split::Dev) == self.is_of_dev();
        Rows::new((self, split), observations, if has_paper { paper } else { &empty })
    }
}
