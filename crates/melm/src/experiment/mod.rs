//! The paper's comparison: a grid of cells, each one trained tagger; a ledger of their scores; tables with intervals.
//!
//! A [`Grid`] names languages, sizes, draws, seeds, systems, budgets and variants; a [`Cell`] is one of each. The
//! [`Bench`] runs cells in any order, several at a time, and puts each down as one [`Line`] of a [`Ledger`]; cells that
//! are in the ledger are not run again. A [`table`] is made of lines alone. Choices are made on dev: unless the bench is
//! handed test sets, there is none to be scored.

mod bench;
mod cell;
mod data;
mod grid;
mod group;
mod key;
mod ledger;
pub mod statistics;
mod system;
pub mod table;
#[cfg(test)]
mod tests;

pub use bench::{Bench, Hear, OpenDevice, Progress, Tally};
pub use cell::Cell;
pub use data::{Language, Languages, Split, gathered, subset};
pub use grid::{Grid, Only, Paper, Shard};
pub use key::Arithmetic;
pub use ledger::{F1, Ledger, Line, Seconds};
pub use system::System;
