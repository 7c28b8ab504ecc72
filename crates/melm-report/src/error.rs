//! The errors of this crate.

use std::path::PathBuf;

/// An error of this crate. A message names the file, says what is wrong with it, and what to do.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A file or folder could not be read.
    #[error("cannot read `{path}`: {source}")]
    Read {
        /// The file or folder.
        path: PathBuf,
        /// The error of the operating system.
        source: std::io::Error,
    },
    /// The folder has none of the files that are read.
    #[error(
        "`{dir}` has neither `run.json` nor `ledger.jsonl`; pass the output folder of `melm augment`, `melm trial -o` or \
         `melm reproduce`"
    )]
    NotARun {
        /// The folder.
        dir: PathBuf,
    },
    /// The folder belongs to a command whose folders have no report.
    #[error(
        "`{dir}` was made by `melm {command}`, and there are reports only of `melm augment`, `melm trial` and `melm reproduce`"
    )]
    OtherCommand {
        /// The folder.
        dir: PathBuf,
        /// The name of the command.
        command: String,
    },
    /// The run was interrupted.
    #[error("the run in `{dir}` is not finished; run the same command again to resume it")]
    Unfinished {
        /// The folder.
        dir: PathBuf,
    },
    /// A line of a file is not valid.
    #[error("`{path}`:{line}: {what}; run the command again with `--force` if the file is damaged")]
    Line {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: usize,
        /// The problem.
        what: String,
    },
    /// The ledger of an experiment could not be read.
    #[error(transparent)]
    Experiment(#[from] melm_eval::Error),
}
