//! The file of a grid: which cells there are, and the settings they share.

use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroU64;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use serde::Deserialize;
use toml::Table;

use super::{Cell, System};
use crate::Error;
use melm::training::Budget;

/// The name of the settings that no variant changes.
pub(crate) const BASE: &str = "base";

/// What a grid's file says.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Grid {
    /// Where files lie below the data folder: `{language}` and `{split}` (train, dev, test) are filled in.
    pub files: String,
    /// The data folder, if the user names none.
    #[serde(default)]
    pub data: Option<PathBuf>,
    /// How often a training of so many updates is evaluated on dev, whatever the size of its training set: the choice
    /// of the best epoch is then as good for each method.
    #[serde(default = "evaluations")]
    pub evaluations: NonZeroU64,
    /// Languages whose taggers are scored on the test sets of other languages too.
    #[serde(default)]
    pub transfer: BTreeMap<String, Vec<String>>,
    /// Blocks of cells; their union is the grid.
    pub grid: Vec<Block>,
    /// Settings laid over the preset.
    #[serde(default)]
    pub plan: Table,
    /// Named settings laid over those, to be compared; without any there is one called `base`.
    #[serde(default)]
    pub variants: BTreeMap<String, Table>,
    /// The paper's values by size, method and column.
    #[serde(default)]
    pub paper: Paper,
}

/// The paper's values by size, method and column.
pub type Paper = BTreeMap<String, BTreeMap<String, BTreeMap<String, f64>>>;

/// A product of coordinates.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Block {
    /// Languages, or several joined by `+`.
    pub languages: Vec<String>,
    /// Sentences of gold a language.
    pub sizes: Vec<usize>,
    /// Draws.
    pub draws: Vec<u64>,
    /// Seeds.
    pub seeds: Vec<u64>,
    /// Methods.
    pub methods: Vec<System>,
    /// Budgets.
    pub budgets: Vec<Budget>,
    /// Variants [default: all].
    #[serde(default)]
    pub variants: Option<Vec<String>>,
}

impl Block {
    fn fault(&self, variants: &[String]) -> Option<String> {
        let lengths = [
            ("languages", self.languages.len()),
            ("sizes", self.sizes.len()),
            ("draws", self.draws.len()),
            ("seeds", self.seeds.len()),
            ("methods", self.methods.len()),
            ("budgets", self.budgets.len()),
            ("variants", self.variants.as_ref().map_or(1, Vec::len)),
        ];
        if let Some((name, _)) = lengths.iter().find(|(_, n)| *n == 0) {
            return Some(format!("`{name}` of a block is empty: it would have no cell"));
        }
        if self.sizes.contains(&0) {
            return Some("`sizes` holds 0: nothing is learnt from no sentence".to_owned());
        }
        for joined in &self.languages {
            let mut parts: Vec<_> = joined.split('+').collect();
            parts.sort_unstable();
            if parts.windows(2).any(|pair| pair[0] == pair[1]) || parts[0].is_empty() {
                return Some(format!("`{joined}` names a language twice, or none"));
            }
        }
        let unknown = self.variants.iter().flatten().find(|variant| !variants.contains(variant))?;
        Some(format!("there is no variant `{unknown}`"))
    }
}

pub(crate) fn evaluations() -> NonZeroU64 {
    NonZeroU64::new(10).expect("ten is not zero")
}

impl Grid {
    /// Parses a grid's file; `name` is for messages.
    pub fn parse(name: &str, text: &str) -> Result<Self, Error> {
        let wrong = |message: String| Error::Grid { name: name.to_owned(), message };
        let grid: Self =
            toml::from_str(text).map_err(|error| wrong(error.to_string().trim_end().to_owned()))?;
        grid.fault().map_or(Ok(grid), |fault| Err(wrong(fault)))
    }

    /// What no run could make sense of.
    fn fault(&self) -> Option<String> {
        let languages: BTreeSet<&str> = self
            .grid
            .iter()
            .flat_map(|block| &block.languages)
            .flat_map(|l| l.split('+'))
            .collect();
        let scored: BTreeSet<&str> =
            self.transfer.values().flatten().map(String::as_str).chain(languages).collect();
        let rest = self.files.replace("{language}", "").replace("{split}", "");
        if !self.files.contains("{split}") {
            return Some("`files` must hold `{split}`".to_owned());
        }
        if rest.contains(['{', '}']) {
            return Some(format!(
                "`files = {:?}`: only `{{language}}` and `{{split}}` are filled in",
                self.files
            ));
        }
        if scored.len() > 1 && !self.files.contains("{language}") {
            return Some("`files` must hold `{language}`: there are several".to_owned());
        }
        if self.grid.is_empty() {
            return Some("it has no block: write `[[grid]]` and what it is made of".to_owned());
        }
        let known = self.variants();
        if let Some(fault) = self.grid.iter().find_map(|block| block.fault(&known)) {
            return Some(fault);
        }
        let is_trained =
            |from: &&String| self.grid.iter().any(|block| block.languages.contains(*from));
        let from = self.transfer.keys().find(|from| !is_trained(from))?;
        Some(format!("`transfer.{from}`: no block has a tagger of {from}"))
    }

    /// The names of its variants; `base`, if it is one of them, first.
    pub fn variants(&self) -> Vec<String> {
        let mut names: Vec<_> = self.variants.keys().cloned().collect();
        names.sort_by_key(|name| name != BASE);
        if names.is_empty() { vec![BASE.to_owned()] } else { names }
    }

    /// Where a language's split lies.
    pub fn file(&self, folder: &Path, language: &str, split: &str) -> PathBuf {
        folder.join(self.files.replace("{language}", language).replace("{split}", split))
    }

    /// The languages whose test sets a cell's tagger is scored on.
    pub fn tests_of<'g>(&'g self, cell: &'g Cell) -> impl Iterator<Item = &'g str> {
        let others = self.transfer.get(&cell.language).into_iter().flatten();
        cell.languages().chain(others.map(String::as_str))
    }

    /// All its cells, each once: those that share their gold and seed side by side, gold first among them.
    pub fn cells(&self) -> Vec<Cell> {
        let mut cells: Vec<Cell> =
            self.grid.iter().flat_map(|block| self.cells_of(block)).collect();
        let variants = self.variants();
        // By draw before language: whatever has been run when it is stopped is balanced.
        cells.sort_by_cached_key(|cell| {
            let variant = variants.iter().position(|name| *name == cell.variant);
            let gold = (cell.draw, cell.seed, cell.size, cell.language.clone());
            (gold, variant, cell.method.rank(), cell.budget.to_string())
        });
        cells.dedup();
        cells
    }

    fn cells_of(&self, block: &Block) -> Vec<Cell> {
        let mut cells = vec![];
        let variants = block.variants.clone().unwrap_or_else(|| self.variants());
        for language in &block.languages {
            for &size in &block.sizes {
                for &draw in &block.draws {
                    for &seed in &block.seeds {
                        for &method in &block.methods {
                            for &budget in &block.budgets {
                                for variant in &variants {
                                    let (language, variant) = (language.clone(), variant.clone());
                                    cells.push(Cell {
                                        language,
                                        size,
                                        draw,
                                        seed,
                                        method,
                                        budget,
                                        variant,
                                    });
                                }
                            }
                        }
                    }
                }
            }
        }
        cells
    }
}

/// A coordinate and the values it may have: `method=gold,melm`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Only {
    name: String,
    /// As written: the name of a variant may hold commas.
    whole: String,
    values: Vec<String>,
}

impl Only {
    /// Whether a cell may stay.
    pub fn lets(&self, cell: &Cell) -> bool {
        cell.coordinate(&self.name)
            .is_some_and(|value| self.whole == value || self.values.contains(&value))
    }

    /// Says so if a value is that of no cell, and which there are.
    pub fn fault<'c>(&self, cells: impl Iterator<Item = &'c Cell>) -> Option<String> {
        let mut there: Vec<String> = Vec::new();
        for value in cells.filter_map(|cell| cell.coordinate(&self.name)) {
            if !there.contains(&value) {
                there.push(value);
            }
        }
        if there.contains(&self.whole) {
            return None;
        }
        let unknown = self.values.iter().find(|value| !there.contains(value))?;
        let there = there.join("`, `");
        Some(format!("no cell has the {} `{unknown}`: there are `{there}`", self.name))
    }
}

impl FromStr for Only {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        const NAMES: [&str; 7] =
            ["language", "size", "draw", "seed", "method", "budget", "variant"];
        let (name, values) = text.split_once('=').unwrap_or((text, ""));
        if !NAMES.contains(&name) || values.is_empty() {
            return Err(format!("expected `NAME=VALUE,VALUE` with one of {}", NAMES.join(", ")));
        }
        let whole = values.to_owned();
        let values = values.split(',').map(|value| value.trim().to_owned()).collect();
        Ok(Self { name: name.to_owned(), whole, values })
    }
}

/// One of several machines that share a grid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shard {
    /// Which, from 1.
    pub number: usize,
    /// Of how many.
    pub of: usize,
}

impl Shard {
    /// Its part of the cells; those with the same gold stay together.
    pub fn part(self, cells: &[Cell]) -> Vec<Cell> {
        let groups = cells.chunk_by(Cell::is_beside).enumerate();
        let own = groups.filter(|(at, _)| at % self.of == self.number - 1);
        own.flat_map(|(_, group)| group.to_vec()).collect()
    }
}

impl FromStr for Shard {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let parsed = text.split_once('/').and_then(|(i, n)| {
            let (number, of) = (i.parse().ok()?, n.parse().ok()?);
            (1..=of).contains(&number).then_some(Self { number, of })
        });
        parsed.ok_or_else(|| format!("`{text}` is no shard: expected `1/4` for the first of four"))
    }
}
