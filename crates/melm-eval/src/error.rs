//! Errors of experiments.

use std::io;
use std::path::PathBuf;

/// An error of an experiment. Messages name the file and, where it is known, what to do.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The method, a model or the data failed.
    #[error(transparent)]
    Melm(#[from] melm::Error),
    /// The file of a grid has a mistake.
    #[error("`{name}`: {message}")]
    Grid {
        /// The grid's file.
        name: String,
        /// The mistake.
        message: String,
    },
    /// A ledger could not be read.
    #[error("cannot read `{path}`")]
    Read {
        /// The file or folder.
        path: PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
    /// A ledger could not be written.
    #[error("cannot write `{path}`; check that the folder can be written to and the disk has room")]
    Write {
        /// The file or folder.
        path: PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
    /// Another process is writing to the ledger.
    #[error(
        "another run is writing to `{path}`; wait for it to end, or use a folder for each run (shards of a grid may share one)"
    )]
    LedgerInUse {
        /// The ledger.
        path: PathBuf,
    },
    /// A line of a ledger cannot be parsed.
    #[error(
        "`{path}`:{line}: {message}; this is not a ledger line: delete it, and its cell is run again"
    )]
    LedgerLine {
        /// The ledger.
        path: PathBuf,
        /// The line's number, from 1.
        line: usize,
        /// The mistake.
        message: String,
    },
    /// The languages of a cell have tags in different schemes.
    #[error(
        "tags in {one} and in {other} cannot be learnt together; bring both into one scheme with `melm convert --to-scheme`"
    )]
    Schemes {
        /// The scheme of the first language.
        one: melm_text::Scheme,
        /// The scheme of another language.
        other: melm_text::Scheme,
    },
}

impl Error {
    /// Returns true if the caller asked the run to stop.
    pub fn is_interruption(&self) -> bool {
        matches!(self, Self::Melm(melm::Error::Interrupted))
    }
}
