//! A cell of a grid: one trained tagger.

use std::fmt;

use melm::training::Budget;
use serde::{Deserialize, Serialize};

use crate::{System, TextChoice};

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
    /// The unlabelled text.
    #[serde(default, skip_serializing_if = "TextChoice::is_none")]
    pub text: TextChoice,
    /// How long the tagger is trained.
    pub budget: Budget,
    /// The name of the settings in the grid.
    pub variant: String,
}

impl Cell {
    /// The names of the coordinates, as `--only` takes them.
    pub(crate) const COORDINATES: [&'static str; 8] =
        ["language", "size", "draw", "seed", "method", "text", "budget", "variant"];

    /// The languages that the tagger learns from.
    pub fn languages(&self) -> impl Iterator<Item = &str> {
        self.language.split('+')
    }

    /// The languages of the unlabelled text. Empty if there is none.
    pub fn text_languages(&self) -> impl Iterator<Item = &str> {
        let (named, is_none) = (&self.text.languages, self.text.is_none());
        let own = self.languages().filter(move |_| named.is_empty() && !is_none);
        named.iter().map(String::as_str).chain(own)
    }

    /// Returns true if the tagger learns from several languages.
    pub fn is_multilingual(&self) -> bool {
        self.language.contains('+')
    }

    /// Returns true if the tagger learns from gold and from nothing else.
    pub(crate) fn is_gold_alone(&self) -> bool {
        self.method == System::GOLD && self.text.is_none()
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
            "text" => self.text.to_string(),
            "budget" => self.budget.to_string(),
            "variant" => self.variant.clone(),
            _ => return None,
        })
    }
}

impl fmt::Display for Cell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { language, size, draw, seed, method, text, budget, variant } = self;
        write!(f, "{language} {size}, draw {draw}, seed {seed}, {method}, ")?;
        if !text.is_none() {
            write!(f, "text {text}, ")?;
        }
        write!(f, "{budget}, {variant}")
    }
}
