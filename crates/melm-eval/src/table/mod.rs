//! Tables from the lines of a ledger: means, standard deviations, paired differences with intervals, and the paper's values.

mod costs;
mod figures;
mod report;
mod rows;
mod write;

pub use costs::costs;
pub use figures::figures;
pub use report::{Report, SelectedLines};
pub use rows::{Row, Rows};
pub use write::{csv, latex, markdown};

use std::collections::BTreeMap;

use melm::augment::DraftSummary;
use melm::methods::Method;
use melm::training::Budget;

use crate::{Cell, Error, Grid, LedgerLine, PaperScores, System, TextChoice};

/// A table of the paper.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Table {
    /// Taggers trained on one language, scored on the same language (Table 1, left).
    Mono,
    /// Taggers trained on one language, scored on other languages (Table 1, right).
    Cross,
    /// Taggers trained on several languages, scored on each of them (Table 2).
    Multi,
    /// New entities against new contexts (Figure 1).
    AddEntity,
    /// The mask rates of fine-tuning and generation (Table 4).
    Masking,
    /// The number of rounds (Table 5).
    Rounds,
    /// Dev scores, time and parameters of MELM in one language (Tables 6 and 7).
    Costs,
    /// Dev scores, time and parameters of the multilingual method (Table 8).
    CostsMulti,
}

/// The set that taggers were scored on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Split {
    /// The dev set, on which all choices are made.
    Dev,
    /// The test set.
    Test,
}

impl Split {
    /// The name of the set.
    pub fn name(self) -> &'static str {
        match self {
            Self::Dev => "dev",
            Self::Test => "test",
        }
    }
}

/// The score of one tagger on one set.
#[derive(Clone, Debug)]
struct Observation<'l> {
    column: String,
    size: usize,
    draw: u64,
    seed: u64,
    method: System,
    text: &'l TextChoice,
    budget: Budget,
    variant: &'l str,
    f1: f64,
    /// True if the judge rejected every draft.
    kept_none: bool,
    /// True if the method fine-tuned a pretrained encoder-decoder.
    is_pretrained: bool,
}

impl Table {
    /// All tables with their names, in the order of `--help`.
    pub const NAMES: [(&'static str, Self); 8] = [
        ("mono", Self::Mono),
        ("cross", Self::Cross),
        ("multi", Self::Multi),
        ("add-entity", Self::AddEntity),
        ("masking", Self::Masking),
        ("rounds", Self::Rounds),
        ("costs", Self::Costs),
        ("costs-multi", Self::CostsMulti),
    ];

    /// The name of the table.
    pub fn name(self) -> &'static str {
        let found = Self::NAMES.into_iter().find(|(_, table)| *table == self);
        found.expect("every table has a name").0
    }

    /// Returns true if the paper has dev scores for this table.
    fn has_dev_scores_in_paper(self) -> bool {
        matches!(self, Self::Masking | Self::Rounds | Self::Costs | Self::CostsMulti)
    }

    /// Returns true if the table shows dev scores even if test sets were scored.
    pub fn has_only_dev_scores(self) -> bool {
        matches!(self, Self::Costs | Self::CostsMulti)
    }

    /// Returns true if one tagger has scores in several columns. These columns are then not independent.
    pub(crate) fn shares_taggers_between_columns(self) -> bool {
        match self {
            Self::Cross | Self::Multi => true,
            Self::Mono
            | Self::AddEntity
            | Self::Masking
            | Self::Rounds
            | Self::Costs
            | Self::CostsMulti => false,
        }
    }

    /// The unit of a paired difference, in words.
    pub(crate) fn unit(self) -> &'static str {
        if self.shares_taggers_between_columns() {
            "a draw, its seeds and its columns averaged"
        } else {
            "a draw of a language, its seeds averaged"
        }
    }

    /// Returns the scores of a ledger line that the table shows.
    fn observe(self, line: &LedgerLine, split: Split) -> Vec<Observation<'_>> {
        let cell = &line.cell;
        let is_joined = cell.is_multilingual();
        let own = |column: String, f1: f64| Observation {
            column,
            size: cell.size,
            draw: cell.draw,
            seed: cell.seed,
            method: cell.method,
            text: &cell.text,
            budget: cell.budget,
            variant: &cell.variant,
            f1,
            is_pretrained: line.seq2seq.is_some(),
            kept_none: line.drafts.as_ref().is_some_and(DraftSummary::all_rejected),
        };
        let tests = line.test.iter();
        let dev = line.dev.iter().map(|dev| own(cell.language.clone(), dev.percent()));
        match (self, split) {
            (Self::Masking | Self::Rounds, Split::Dev) => dev.collect(),
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

    /// Computes the rows of the table from the lines of a ledger.
    ///
    /// The paper's values are added if the paper has scores of this split for the table.
    pub fn rows(self, lines: &[LedgerLine], split: Split, paper: &PaperScores) -> Rows {
        let observations: Vec<_> =
            lines.iter().flat_map(|line| self.observe(line, split)).collect();
        let empty = BTreeMap::new();
        let has_paper = (split == Split::Dev) == self.has_dev_scores_in_paper();
        Rows::new(self, split, &observations, if has_paper { paper } else { &empty })
    }
    /// Fails if the table of these cells would be empty. `with_test` says whether test sets are scored.
    pub fn check(self, grid: &Grid, cells: &[Cell], with_test: bool) -> Result<(), Error> {
        let is_of = |cell: &Cell, method: Method| cell.method == System::Method(method);
        let is_melm = |cell: &Cell| is_of(cell, Method::Melm) && !cell.is_multilingual();
        let is_codemix = |cell: &Cell| is_of(cell, Method::MelmCodemix);
        let is_transferred = |cell: &Cell| grid.transfer.contains_key(&cell.language);
        let (message, hint) = match self {
            Self::Cross if !with_test => (
                "the table `cross` scores taggers on the test sets of other languages",
                "pass `--test` when all choices are made",
            ),
            Self::Cross if !cells.iter().any(is_transferred) => (
                "no tagger of the grid is scored on another language",
                "name languages in the grid, as in `transfer.en = [\"de\"]`",
            ),
            Self::Costs if !cells.iter().any(is_melm) => (
                "the table `costs` needs cells of the method melm with one language, and there are none",
                "keep melm in `--only`, or add it to the grid; for several languages use `costs-multi`",
            ),
            Self::CostsMulti if !cells.iter().any(is_codemix) => (
                "the table `costs-multi` needs cells of the method melm-codemix, and there are none",
                "keep melm-codemix in `--only`, or add it to the grid",
            ),
            Self::Multi if !cells.iter().any(Cell::is_multilingual) => (
                "the table `multi` needs taggers of several languages, and there are none",
                "join languages in the grid, as in `languages = [\"en+de\"]`",
            ),
            Self::Mono | Self::AddEntity if cells.iter().all(Cell::is_multilingual) => {
                ("all taggers of the grid are of several languages", "use `melm reproduce multi`")
            }
            Self::Mono
            | Self::Cross
            | Self::Multi
            | Self::AddEntity
            | Self::Masking
            | Self::Rounds
            | Self::Costs
            | Self::CostsMulti => return Ok(()),
        };
        Err(Error::EmptyTable { message, hint })
    }

    /// The beginning of the names of the table's files.
    fn file_stem(self) -> String {
        if self == Self::Mono { "table".to_owned() } else { format!("table-{}", self.name()) }
    }
}
