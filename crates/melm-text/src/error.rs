//! What can go wrong in this crate.

use std::io;

use thiserror::Error;

use crate::problem::{Problem, Problems};
use crate::scheme::Scheme;

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
    /// Two files that should hold the same sentences do not: what differs, with both places.
    #[error("{0}")]
    Mismatch(String),
    /// A tag that the scheme of a strict reading does not have.
    #[error("`{tag}` in {name}:{line} is no tag of {scheme}")]
    ForeignTag {
        /// The tag.
        tag: String,
        /// Its file.
        name: String,
        /// Its line.
        line: usize,
        /// The scheme.
        scheme: Scheme,
    },
    /// A tag that the names of a file's ids lack.
    #[error("the names of the tag ids have no `{tag}`")]
    NoName {
        /// The tag.
        tag: String,
    },
    /// A column that the output format cannot hold.
    #[error("`{column}` in sentence {sentence} cannot be written between spaces")]
    Unwritable {
        /// What stands in the column.
        column: String,
        /// Its sentence, from 1.
        sentence: usize,
    },
}

impl Error {
    /// The problems of a file, each with the part of its line around what is wrong.
    pub fn data(name: &str, text: &str, mut problems: Problems) -> Self {
        problems.sort();
        let mut excerpts = Vec::with_capacity(problems.first().len());
        let mut lines = text.split('\n').enumerate();
        let mut last: Option<(usize, &str)> = None;
        for problem in problems.first_mut() {
            if last.is_none_or(|(line, _)| line != problem.line) {
                last = lines.find(|(n, _)| n + 1 == problem.line).map(|(n, l)| (n + 1, l));
            }
            excerpts.push(cut(last.map_or("", |(_, line)| line).trim_end_matches('\r'), problem));
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
            Error::Read { source, .. }
                if matches!(
                    source.kind(),
                    io::ErrorKind::UnexpectedEof
                        | io::ErrorKind::InvalidInput
                        | io::ErrorKind::InvalidData
                ) =>
            {
                Some("the file is cut short or damaged: fetch it again".into())
            }
            Error::Mismatch(_) => Some(
                "predictions must keep the sentences and tokens of the gold file, in its order"
                    .into(),
            ),
            Error::ForeignTag { .. } => {
                Some("name the scheme of both files with `--scheme`, or convert one of them".into())
            }
            Error::Unwritable { .. } => Some("write tabs: pass `--separator tab`".into()),
            _ => None,
        }
    }
}

/// How much of a line is kept on either side of a problem, in bytes.
const KEPT_AROUND: usize = 400;

/// Keeps the part of a line around a problem, whose column is noted and whose span is moved along.
fn cut(line: &str, problem: &mut Problem) -> String {
    let start = line.floor_char_boundary(problem.span.start.min(line.len()));
    let end = line.ceil_char_boundary(problem.span.end.min(line.len())).max(start);
    let from = line.floor_char_boundary(start.saturating_sub(KEPT_AROUND));
    let to = line.ceil_char_boundary((end.min(start + KEPT_AROUND) + KEPT_AROUND).min(line.len()));
    problem.column = line[..start].chars().count() + 1;
    problem.span = start - from..end.min(to) - from;
    line[from..to].to_owned()
}
