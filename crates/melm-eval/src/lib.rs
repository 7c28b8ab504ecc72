//! Experiments with `melm`: compare taggers that were trained with different methods of augmentation.
//!
//! - A [`Grid`] names languages, sizes, draws, seeds, systems, budgets and variants of settings. A [`Cell`] is one
//!   combination of them: one trained tagger. [`CellFilter`] and [`shard_cells`] select cells.
//! - [`Plans`] holds the settings of each variant, [`Languages`] the data.
//! - The [`ExperimentRunner`] runs cells in any order, several at a time, and adds one [`LedgerLine`] for each to a [`Ledger`].
//!   A cell that is already in the ledger is not run again. It is found by its key, the digest of a [`CellKey`].
//! - A [`table::Table`] is computed from ledger lines alone, with paired differences and their intervals
//!   ([`statistics`]). A [`table::Report`] writes it to files.
//! - A [`Trial`] tests by cross-validation whether a method helps on the user's own data.
//!
//! Taggers are scored on test sets only if [`Languages`] contains these. All choices are made on dev sets.
//!
//! # Example
//! The cells of a grid, and the table of a ledger with the lines of two cells:
//! ```
//! use melm_eval::table::{Split, Table, markdown};
//! use melm_eval::{Grid, LedgerLine};
//!
//! let grid = Grid::parse(
//!     "grid.toml",
//!     r#"
//!     files = "{language}/{split}.conll"
//!     [[grid]]
//!     languages = ["en"]
//!     sizes = [100]
//!     draws = [1, 2, 3]
//!     seeds = [1]
//!     methods = ["gold", "melm"]
//!     budgets = ["300 updates"]
//!     "#,
//! )?;
//! let cells = grid.cells();
//! assert_eq!(cells.len(), 6);
//!
//! let line = |cell: usize, correct: u64| -> LedgerLine {
//!     serde_json::from_value(serde_json::json!({
//!         "key": "", "melm": "", "n_train": 100, "updates": 300, "best_epoch": null,
//!         "language": "en", "size": 100, "draw": cells[cell].draw, "seed": 1,
//!         "method": cells[cell].method, "budget": "300 updates", "variant": "base",
//!         "dev": { "f1": 0.0, "by_type": { "PER": [100, 100, correct] } },
//!         "seconds": { "drafts": 0.0, "train": 0.0, "score": 0.0 },
//!         "data": {}, "plan": "", "models": ["", ""], "device": "",
//!     }))
//!     .expect("a ledger line")
//! };
//! let rows = Table::Mono.rows(&[line(0, 60), line(1, 63)], Split::Dev, &grid.paper);
//! assert!(markdown(&rows).contains("| 100 | melm | 63.0 | 63.0 | +3.0"));
//! # Ok::<(), melm_eval::Error>(())
//! ```

mod cell;
mod data;
mod ensemble;
mod entities;
mod error;
mod figure;
mod grid;
mod group;
mod jobs;
mod key;
mod ledger;
mod lines;
mod noise;
mod oracle;
mod picking;
mod plans;
mod predictions;
mod read;
mod runner;
mod select;
pub mod statistics;
mod swap;
mod system;
pub mod table;
#[cfg(test)]
mod tests;
mod text;
mod training_set;
mod trial;

pub use cell::Cell;
pub use data::{Dataset, LanguageData, Languages, joined_training_sets};
pub use entities::{
    Entities, EntityLedger, EntityLine, EntityTable, entity_ledger_name, without_budgets,
};
pub use error::Error;
pub use figure::{Figure, Series};
pub use grid::{Block, ExampleSentence, Grid, MAX_CELLS, PaperScores};
pub use jobs::{CellEvent, OnProgress, OpenDevice, Progress, ProgressMeter, RunSummary};
pub use key::{CellKey, DataKey, Fingerprints, NamesKey, TextKey, TextKeys};
pub use ledger::{F1, Ledger, LedgerLine, Seconds};
pub use oracle::ORACLE_BUDGET;
pub use picking::{PickResult, Picking};
pub use plans::{Needs, Plans};
pub use predictions::PredictionTable;
pub use read::{GridData, WholeFile};
pub use runner::{Clock, ExperimentModels, ExperimentRunner};
pub use select::{CellFilter, ledger_name, shard_cells};
pub use system::System;
pub use text::{Accuracy, TextChoice, TextResult};
pub use trial::{Difference, Trial, TrialDefaults, TrialResult, TrialSystem};
