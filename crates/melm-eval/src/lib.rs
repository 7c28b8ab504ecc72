//! The paper's comparison: a grid of cells, each one trained tagger; a ledger of their scores; tables with intervals.
//!
//! A [`Grid`] names languages, sizes, draws, seeds, systems, budgets and variants; a [`Cell`] is one of each. The
//! [`Bench`] runs cells in any order, several at a time, and puts each down as one [`Line`] of a [`Ledger`]; cells that
//! are in the ledger are not run again. A [`table`] is made of lines alone. Choices are made on dev: unless the bench is
//! handed test sets, there is none to be scored.

mod analyses;
mod bench;
mod cell;
mod data;
mod entities;
mod error;
mod extra;
mod figure;
mod grid;
mod group;
mod jobs;
mod key;
mod ledger;
mod predictions;
pub mod statistics;
mod system;
pub mod table;
#[cfg(test)]
mod tests;
mod trial;

pub use bench::Bench;
pub use cell::Cell;
pub use data::{Language, Languages, Split, gathered, subset};
pub use entities::Entities;
pub use error::Error;
pub use figure::{Figure, Series};
pub use grid::{Block, Grid, Only, Paper, Shard};
pub use jobs::{Hear, OpenDevice, Progress, Tally};
pub use key::Arithmetic;
pub use ledger::{F1, Ledger, Line, Seconds};
pub use predictions::{MODELS, Prediction, predictions};
pub use system::System;
pub use trial::{Difference, Trial, TrialResult};
