//! One tagger of the grid.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::System;
use melm::training::Budget;

/// The coordinates of one tagger.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cell {
    /// What it learns from: a language, or several joined by `+`.
    pub language: String,
    /// Sentences of gold a language.
    pub size: usize,
    /// Which draw of so many sentences: the seed of `melm sample`.
    pub draw: u64,
    /// The seed of everything random after the draw.
    pub seed: u64,
    /// How its training set is made.
    pub method: System,
    /// How long it is trained.
    pub budget: Budget,
    /// Which settings of the grid.
    pub variant: String,
}

impl Cell {
    /// The languages it learns from.
    pub fn languages(&self) -> impl Iterator<Item = &str> {
        self.language.split('+')
    }

    /// Whether both learn from the same gold with the same seed, and can share their judge.
    pub(crate) fn is_beside(&self, other: &Self) -> bool {
        (&self.language, self.size, self.draw, self.seed)
            == (&other.language, other.size, other.draw, other.seed)
    }

    /// The value of a coordinate by its name.
    pub fn coordinate(&self, name: &str) -> Option<String> {
        Some(match name {
            "language" => self.language.clone(),
            "size" => self.size.to_string(),
            "draw" => self.draw.to_string(),
            "seed" => self.seed.to_string(),
            "method" => self.method.to_string(),
            "budget" => self.budget.to_string(),
            "variant" => self.variant.clone(),
            _ => return None,
        })
    }
}

impl fmt::Display for Cell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { language, size, draw, seed, method, budget, variant } = self;
        write!(f, "{language} {size}, draw {draw}, seed {seed}, {method}, {budget}, {variant}")
    }
}
