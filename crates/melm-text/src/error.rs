//! What can go wrong in this crate.

use std::io;

use thiserror::Error;

use crate::problem::Problems;

/// Why a file could not be read or written.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum Error {
    /// The file could not be read at all.
    #[error("cannot read `{name}`")]
    Read {
        /// The file.
        name: String,
        /// Why.
        source: io::Error,
    },
    /// The output could not be written.
    #[error("cannot write `{name}`")]
    Write {
        /// The file.
        name: String,
        /// Why.
        source: io::Error,
    },
    /// The file was read, and there are problems in it.
    #[error("`{name}`: {} problem{}", problems.len(), if problems.len() == 1 { "" } else { "s" })]
    Data {
        /// The file.
        name: String,
        /// What is wrong where.
        problems: Problems,
        /// The line of each kept problem.
        excerpts: Vec<String>,
    },
    /// A token that the output format cannot hold.
    #[error("token `{token}` of sentence {sentence} cannot be written between spaces")]
    Unwritable {
        /// The token.
        token: String,
        /// Its sentence, from 1.
        sentence: usize,
    },
}

impl Error {
    /// The problems of a file, each with its line.
    pub fn data(name: &str, text: &str, mut problems: Problems) -> Self {
        let mut excerpts = Vec::with_capacity(problems.first().len());
        let mut lines = text.split('\n').enumerate();
        problems.sort();
        let mut last: Option<(usize, &str)> = None;
        for problem in problems.first() {
            if last.is_none_or(|(line, _)| line != problem.line) {
                last = lines.find(|(n, _)| n + 1 == problem.line).map(|(n, l)| (n + 1, l));
            }
            excerpts.push(last.map_or("", |(_, l)| l).trim_end_matches('\r').to_owned());
        }
        Error::Data { name: name.to_owned(), problems, excerpts }
    }

    /// What the user can do about it, where we know; each [`crate::Fault`] has its own cure.
    pub fn cure(&self) -> Option<String> {
        match self {
            Error::Read { source, .. } if source.kind() == io::ErrorKind::NotFound => {
                Some("check the path; `-` reads standard input".into())
            }
            Error::Read { source, .. } if source.kind() == io::ErrorKind::IsADirectory => {
                Some("name a file in it".into())
            }
            Error::Unwritable { .. } => Some("write tabs: pass `--separator tab`".into()),
            _ => None,
        }
    }
}
