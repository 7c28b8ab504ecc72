//! The `[names]` section of a plan.

use std::num::NonZeroUsize;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::rate::Rate;

/// The settings of lists of names, for the methods `label-wise` and `melm-both`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct NamesSettings {
    /// The share of new mentions that are names of a list, if the entity type has a list. The others are mentions of other
    /// gold sentences. 0: the lists are not used.
    pub share: Rate,
    /// If true and the run has unlabelled text, names that the panel finds in the text make one more round of drafts. A name
    /// must always have the same type, must not be a mention of gold, and must meet the next two conditions.
    pub harvest: bool,
    /// The minimum number of times that the panel must find a name.
    pub harvest_count: NonZeroUsize,
    /// The minimum share of the panel's votes for a name, over all its occurrences.
    pub harvest_votes: Rate,
}

/// Names that occur once are often mistakes of the panel.
const HARVEST_COUNT: NonZeroUsize = NonZeroUsize::new(2).expect("not 0");

impl Default for NamesSettings {
    fn default() -> Self {
        Self {
            share: Rate::constant(0.5),
            harvest: false,
            harvest_count: HARVEST_COUNT,
            harvest_votes: Rate::constant(1.0),
        }
    }
}
