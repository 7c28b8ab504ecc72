//! Why a command could not do what it was asked.

use std::io;

use thiserror::Error;

use crate::interrupt::INTERRUPTED;

/// Everything that ends a command early.
#[derive(Debug, Error)]
pub(crate) enum Failure {
    /// A file could not be read, or there is something wrong in it.
    #[error(transparent)]
    Text(#[from] melm_text::Error),
    /// The method could not do it.
    #[error(transparent)]
    Method(#[from] melm::Error),
    /// An experiment failed.
    #[error(transparent)]
    Experiment(melm_eval::Error),
    /// This program, or this machine, cannot do it.
    #[error("{message}")]
    Impossible {
        /// What cannot be done.
        message: String,
        /// What to do instead.
        hint: String,
    },
    /// The user stopped what is not kept; says what would have kept it.
    #[error("stopped; nothing is kept{0}")]
    Lost(&'static str),
    /// The output exists already.
    #[error("`{0}` exists already")]
    Exists(String),
    /// The output could not be written.
    #[error("cannot write `{name}`: {source}")]
    Write {
        /// The output.
        name: String,
        /// Why.
        source: io::Error,
    },
    /// The problems were reported as part of the command's own output.
    #[error("{0}")]
    Reported(String),
    /// Options that do not go together with the data.
    #[error("{message}")]
    Usage {
        /// What is wrong.
        message: String,
        /// What to do about it.
        hint: &'static str,
    },
}

impl Failure {
    /// 1: data, file or device; 2: usage; 130: interrupted.
    pub(crate) fn exit_code(&self) -> u8 {
        match self {
            Failure::Usage { .. }
            | Failure::Method(melm::Error::UnknownKey { .. } | melm::Error::Setting { .. }) => 2,
            Failure::Experiment(error) if error.is_usage() => 2,
            Failure::Method(melm::Error::Interrupted) | Failure::Lost(_) => INTERRUPTED,
            _ => 1,
        }
    }

    /// The same, unless it is an interruption that would promise to go on.
    pub(crate) fn lost(self, but: &'static str) -> Self {
        match self {
            Failure::Method(melm::Error::Interrupted) => Failure::Lost(but),
            other => other,
        }
    }

    /// Whether somebody closed standard output (`melm … | head`): that is no failure.
    pub(crate) fn is_closed_pipe(&self) -> bool {
        matches!(self, Failure::Write { source, .. } if source.kind() == io::ErrorKind::BrokenPipe)
    }

    /// What the user can do about it, where we know.
    pub(crate) fn hint(&self) -> Option<String> {
        match self {
            Failure::Text(error) => error.cure(),
            Failure::Exists(_) => Some("pass `--force` to overwrite it".into()),
            Failure::Usage { hint, .. } => Some((*hint).into()),
            Failure::Impossible { hint, .. } => Some(hint.clone()),
            Failure::Write { source, .. } if source.kind() == io::ErrorKind::NotFound => {
                Some("create the folder first".into())
            }
            Failure::Method(_)
            | Failure::Experiment(_)
            | Failure::Lost(_)
            | Failure::Write { .. }
            | Failure::Reported(_) => None,
        }
    }
}

impl From<melm_eval::Error> for Failure {
    fn from(error: melm_eval::Error) -> Self {
        match error {
            melm_eval::Error::Melm(error) => Failure::Method(error),
            other => Failure::Experiment(other),
        }
    }
}
