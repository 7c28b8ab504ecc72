//! Errors of experiments.

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
    /// The variants of a grid differ in something that one run cannot vary.
    #[error(
        "the variants of `{name}` have different {what}; run each in a folder of its own, with `{option}`"
    )]
    Variants {
        /// The grid's file.
        name: String,
        /// The setting that differs.
        what: &'static str,
        /// The option of `melm reproduce` for this setting.
        option: &'static str,
    },
    /// A filter of cells has a value that no cell has.
    #[error(
        "no cell has the {coordinate} `{value}`: there are `{known}`; see `--only` in `melm reproduce --help`"
    )]
    FilterValue {
        /// The coordinate.
        coordinate: String,
        /// The value.
        value: String,
        /// The values that cells have.
        known: String,
    },
    /// No cell passes all filters.
    #[error("no cell of the grid passes `--only`; list the cells of the grid with `--dry-run`")]
    NoCells,
    /// No line of a ledger passes all filters.
    #[error("no line of the ledger passes `--only`; leave it out to see all lines")]
    NoLines,
    /// A folder has no ledger, or an empty one.
    #[error(
        "there is no ledger in `{dir}`, or it is empty; name the folder of a run with `-o DIR`, or run the grid without `--table-only`"
    )]
    NoLedger {
        /// The folder.
        dir: PathBuf,
    },
    /// A table would stay empty.
    #[error("{message}; {hint}")]
    EmptyTable {
        /// Why the table would be empty.
        message: &'static str,
        /// What to change.
        hint: &'static str,
    },
    /// A grid has no data folder.
    #[error(
        "the grid `{name}` needs data; name its folder with `--data DIR`, or try `--smoke` on the shipped example"
    )]
    NoDataFolder {
        /// The grid's file.
        name: String,
    },
    /// A file of a grid's data does not exist.
    #[error(
        "the grid needs `{path}`, which does not exist; `files` in the grid says where files are in `--data DIR`, and `--only language=…` leaves languages out"
    )]
    NoDataFile {
        /// The file.
        path: PathBuf,
    },
    /// A file has fewer sentences than a cell draws.
    #[error(
        "the grid asks for {size} sentences; `{path}` has {found}: leave the size out, for instance with `--only size=…`"
    )]
    TooFewSentences {
        /// The file.
        path: PathBuf,
        /// The number of sentences that a cell needs.
        size: usize,
        /// The number of sentences in the file.
        found: usize,
    },
    /// The device of a job has another arithmetic than the one in the keys of the cells.
    #[error(
        "the ledger's cells are computed with {expected}, but this job would use {found}; run fewer jobs at a time with `--jobs`, or all of them with `--device cpu`"
    )]
    OtherDevice {
        /// The arithmetic of the experiment.
        expected: String,
        /// The arithmetic of the job's device.
        found: String,
    },
    /// A trial cannot be run with these settings.
    #[error("{message}; {hint}")]
    Trial {
        /// The mistake.
        message: String,
        /// What to change.
        hint: &'static str,
    },
    /// Another process is writing to the ledger.
    #[error(
        "another run is writing to `{path}`; wait for it to end, or use a folder for each run (shards of a grid may share one)"
    )]
    LedgerInUse {
        /// The ledger.
        path: PathBuf,
    },
    /// The folder for a ledger is the output folder of `melm augment`, `train` or `finetune`.
    #[error("`{dir}` is the folder of another run; choose another folder with `-o DIR`")]
    FolderOfRun {
        /// The folder.
        dir: PathBuf,
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
    /// Returns true if the run stopped because the caller asked it to.
    pub fn is_interruption(&self) -> bool {
        matches!(self, Self::Melm(melm::Error::Interrupted))
    }

    /// Returns true if the caller made a mistake. Returns false if a file, a device or the data caused the error.
    pub fn is_usage(&self) -> bool {
        match self {
            Self::Grid { .. }
            | Self::Variants { .. }
            | Self::FilterValue { .. }
            | Self::NoCells
            | Self::NoLines
            | Self::EmptyTable { .. }
            | Self::NoDataFolder { .. }
            | Self::Trial { .. } => true,
            Self::Melm(error) => {
                matches!(error, melm::Error::UnknownKey { .. } | melm::Error::Setting { .. })
            }
            Self::NoLedger { .. }
            | Self::NoDataFile { .. }
            | Self::TooFewSentences { .. }
            | Self::OtherDevice { .. }
            | Self::LedgerInUse { .. }
            | Self::LedgerLine { .. }
            | Self::Schemes { .. }
            | Self::FolderOfRun { .. } => false,
        }
    }
}
