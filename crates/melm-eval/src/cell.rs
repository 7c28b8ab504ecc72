//! A cell of a grid: one trained tagger.

use std::fmt;

use melm::training::Budget;
use serde::{Deserialize, Serialize};

use crate::System;

/// The coordinates of one tagger in a grid.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cell {
    /// The language that the tagger learns from, or several joined by `+`.
    pub language: String,
    /// The number of gold sentences for each language.
    pub size: usize,
    /// The number of the draw, which is the seed for `melm sample`.
    pub draw: u64,
    /// The seed of everything random after the draw.
    pub seed: u64,
    /// How the training set is made.
    pub method: System,
    /// How long the tagger is trained.
    pub budget: Budget,
    /// The name of the settings in the grid.
    pub variant: String,
}

impl Cell {
    /// The names of the coordinates, as `--only` takes them.
    pub(crate) const COORDINATES: [&'static str; 7] =
        ["language", "size", "draw", "seed", "method", "budget", "variant"];

    /// The languages that the tagger learns from.
    pub fn languages(&self) -> impl Iterator<Item = &str> {
        self.language.split('+')
    }

    /// Returns true if the tagger learns from several languages.
    pub fn is_multilingual(&self) -> bool {
        self.language.contains('+')
    }

    /// Returns true if both cells learn from the same gold with the same seed, so that they can share a judge.
    pub(crate) fn shares_gold_with(&self, other: &Self) -> bool {
        (&self.language, self.size, self.draw, self.seed)
            == (&other.language, other.size, other.draw, other.seed)
    }

    /// Returns the value of a coordinate as text, or `None` if there is no coordinate of that name.
    pub(crate) fn coordinate(&self, name: &str) -> Option<String> {
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
