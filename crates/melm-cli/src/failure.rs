//! The reasons why a command ends early.

use std::io;

use thiserror::Error;

use crate::interrupt::INTERRUPTED;

/// Everything that ends a command early.
#[derive(Debug, Error)]
pub(crate) enum Failure {
    /// A file could not be read or contains errors.
    #[error(transparent)]
    Text(melm_text::Error),
    /// An error of the library `melm`.
    #[error(transparent)]
    Method(melm::Error),
    /// An experiment failed.
    #[error(transparent)]
    Experiment(melm_eval::Error),
    /// The folder of a run could not be read.
    #[error(transparent)]
    Report(melm_report::Error),
    /// This program or this machine cannot do what was asked.
    #[error("{message}")]
    Impossible {
        /// The message.
        message: String,
        /// The advice for the user.
        hint: String,
    },
    /// The user stopped a command that saves nothing. The text says how to save the work.
    #[error("stopped; nothing was saved{0}")]
    Discarded(&'static str),
    /// The output exists already.
    #[error("`{0}` exists already")]
    Exists(String),
    /// The output could not be written.
    #[error("cannot write `{name}`: {source}")]
    Write {
        /// The name of the output.
        name: String,
        /// The cause.
        source: io::Error,
    },
    /// The command has already printed the problems as part of its output.
    #[error("{0}")]
    Reported(String),
    /// Options that contradict each other or the data.
    #[error("{message}")]
    Usage {
        /// The message.
        message: String,
        /// The advice for the user.
        hint: &'static str,
    },
}

impl Failure {
    /// Returns the exit code: 1 for data, files and devices, 2 for usage, 130 if interrupted.
    pub(crate) fn exit_code(&self) -> u8 {
        match self {
            Failure::Usage { .. }
            | Failure::Method(
                melm::Error::UnknownKey { .. }
                | melm::Error::Setting { .. }
                | melm::Error::GoldWithoutLanguage { .. }
                | melm::Error::TextWithoutLanguage { .. }
                | melm::Error::UnknownNameType { .. }
                | melm::Error::UnusedNames { .. },
            ) => 2,
            Failure::Experiment(error) if error.is_usage() => 2,
            Failure::Method(melm::Error::Interrupted) | Failure::Discarded(_) => INTERRUPTED,
            _ => 1,
        }
    }

    /// Replaces an interruption by [`Failure::Discarded`], for a command that cannot resume.
    pub(crate) fn without_saved_state(self, advice: &'static str) -> Self {
        match self {
            Failure::Method(melm::Error::Interrupted) => Failure::Discarded(advice),
            other => other,
        }
    }

    /// Sets the name of the output in a failure to write.
    pub(crate) fn with_output_name(self, name: &str) -> Self {
        match self {
            Failure::Write { source, .. } => Failure::Write { name: name.to_owned(), source },
            other => other,
        }
    }

    /// Returns true if the reader closed standard output (`melm … | head`), which is not a failure.
    pub(crate) fn is_closed_pipe(&self) -> bool {
        matches!(self, Failure::Write { source, .. } if source.kind() == io::ErrorKind::BrokenPipe)
    }

    /// Returns advice for the user, if there is any.
    pub(crate) fn hint(&self) -> Option<String> {
        match self {
            Failure::Text(error) => error.cure(),
            Failure::Method(error) => error.cure(),
            Failure::Exists(_) => Some("pass `--force` to overwrite it".into()),
            Failure::Usage { hint, .. } => Some((*hint).into()),
            Failure::Impossible { hint, .. } => Some(hint.clone()),
            Failure::Write { source, .. } if source.kind() == io::ErrorKind::NotFound => {
                Some("create the folder first".into())
            }
            Failure::Write { source, .. } if source.kind() == io::ErrorKind::IsADirectory => {
                Some("pass the name of a file, which may be in this folder".into())
            }
            Failure::Experiment(_)
            | Failure::Report(_)
            | Failure::Discarded(_)
            | Failure::Write { .. }
            | Failure::Reported(_) => None,
        }
    }
}

impl From<melm_text::Error> for Failure {
    fn from(error: melm_text::Error) -> Self {
        match error {
            // A `Failure::Write` may be a closed pipe, which is not reported as a failure.
            melm_text::Error::Write { source } => Failure::Write { name: "output".into(), source },
            other => Failure::Text(other),
        }
    }
}

impl From<melm::Error> for Failure {
    fn from(error: melm::Error) -> Self {
        match error {
            // A `Failure::Text` is shown with the lines of the problems.
            melm::Error::Text(error) => error.into(),
            other => Failure::Method(other),
        }
    }
}

impl From<melm_report::Error> for Failure {
    fn from(error: melm_report::Error) -> Self {
        match error {
            // The cause and the advice of such an error are shown too.
            melm_report::Error::Experiment(error) => error.into(),
            other => Failure::Report(other),
        }
    }
}

impl From<melm_eval::Error> for Failure {
    fn from(error: melm_eval::Error) -> Self {
        match error {
            melm_eval::Error::Melm(error) => error.into(),
            other => Failure::Experiment(other),
        }
    }
}
