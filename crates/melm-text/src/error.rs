//! The errors of this crate.

use std::io;

use thiserror::Error;

use crate::problem::{Problem, Problems};
use crate::scheme::Scheme;

/// The reason why a file could not be read, written or scored.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum Error {
    /// The operating system could not read the file.
    #[error("cannot read `{name}`")]
    Read {
        /// The name of the file.
        name: String,
        /// The cause.
        source: io::Error,
    },
    /// The contents of the file are wrong.
    #[error("`{name}`: {} problem{}", problems.len(), if problems.len() == 1 { "" } else { "s" })]
    Data {
        /// The name of the file.
        name: String,
        /// All problems, by line.
        problems: Problems,
        /// For each stored problem, the part of the line around it.
        excerpts: Vec<String>,
    },
    /// Two files or corpora do not have the same sentences. The text says where they differ.
    #[error("{0}")]
    Mismatch(String),
    /// A tag has a prefix that the scheme of strict scoring does not use.
    #[error("{name}:{line}: `{tag}` is not a tag of {scheme}")]
    ForeignTag {
        /// The tag.
        tag: String,
        /// The name of the file that contains the tag.
        name: String,
        /// The line of the tag, from 1.
        line: usize,
        /// The scheme.
        scheme: Scheme,
    },
    /// A tag cannot be written as an id, since the names of the tag ids do not contain it.
    #[error("the tag `{tag}` has no id")]
    NoName {
        /// The tag.
        tag: String,
    },
    /// A file with unlabelled text is too large.
    #[error("`{name}` contains more than {limit}")]
    TooLarge {
        /// The name of the file.
        name: String,
        /// The limit, such as `256 MiB of text`.
        limit: String,
    },
    /// A line of a file is too long.
    #[error("`{name}` has a line of more than {limit_mib} MiB")]
    LongLine {
        /// The name of the file.
        name: String,
        /// The limit in MiB.
        limit_mib: usize,
    },
    /// A binary file is too large.
    #[error("`{name}` is a binary file of more than {limit_mib} MiB")]
    LargeBinary {
        /// The name of the file.
        name: String,
        /// The limit in MiB.
        limit_mib: usize,
    },
    /// The output could not be written.
    #[error("cannot write the output: {source}")]
    Write {
        /// The cause.
        source: io::Error,
    },
    /// The format cannot store an entity type with a space.
    #[error("the entity type `{entity_type}` contains a space, which {format} cannot store")]
    TypeWithSpace {
        /// The entity type.
        entity_type: String,
        /// The name of the format.
        format: &'static str,
    },
    /// A column contains a space, and the output separates columns by spaces.
    #[error(
        "`{column}` in sentence {sentence} contains a space: spaces cannot separate the columns"
    )]
    Unwritable {
        /// The text of the column.
        column: String,
        /// The number of the sentence, from 1.
        sentence: usize,
    },
}

impl Error {
    /// Makes an [`Error::Data`] from the problems of a file with this name and text. Cuts out the
    /// part of the line around each problem.
    pub fn data(name: &str, text: &str, mut problems: Problems) -> Self {
        problems.sort();
        let mut excerpts = Vec::with_capacity(problems.first().len());
        let mut lines = text.split('\n').enumerate();
        let mut last: Option<(usize, &str)> = None;
        for problem in problems.first_mut() {
            if last.is_none_or(|(line, _)| line != problem.line) {
                last = lines.find(|(n, _)| n + 1 == problem.line).map(|(n, l)| (n + 1, l));
            }
            excerpts.push(cut_excerpt(
                last.map_or("", |(_, line)| line).trim_end_matches('\r'),
                problem,
            ));
        }
        Error::Data { name: name.to_owned(), problems, excerpts }
    }

    /// Returns advice for the user. It is `None` for [`Error::Data`], because each problem has its own advice: see
    /// [`crate::Fault::cure`].
    pub fn cure(&self) -> Option<String> {
        match self {
            Error::Read { source, .. } if source.kind() == io::ErrorKind::NotFound => {
                Some("check the path; `-` reads standard input".into())
            }
            Error::Read { source, .. } if source.kind() == io::ErrorKind::IsADirectory => {
                Some("pass a file in the folder".into())
            }
            Error::Read { source, .. }
                if matches!(
                    source.kind(),
                    io::ErrorKind::UnexpectedEof
                        | io::ErrorKind::InvalidInput
                        | io::ErrorKind::InvalidData
                ) =>
            {
                Some("the file is truncated or damaged: download it again".into())
            }
            Error::Read { source, .. } if source.kind() == io::ErrorKind::OutOfMemory => {
                Some("divide the file, or use a machine with more memory".into())
            }
            Error::LargeBinary { .. } => Some(
                "divide the file, or set `MELM_LIMIT_FACTOR=4` if you trust it".into(),
            ),
            Error::Mismatch(_) => Some(
                "predictions need the same sentences and tokens as the gold file, in the same order"
                    .into(),
            ),
            Error::ForeignTag { .. } => {
                Some("pass the scheme of both files with `--scheme`, or convert one of them".into())
            }
            Error::TooLarge { .. } => Some(
                "use a part of the text, for example `head -n 100000`: some thousand sentences are \
                 enough"
                    .into(),
            ),
            Error::LongLine { .. } => Some(
                "write one object on each line, for example with `jq -c '.[]'`, or split the file"
                    .into(),
            ),
            Error::TypeWithSpace { .. } => Some("rename the entity type".into()),
            Error::Unwritable { .. } => Some("pass `--separator tab`".into()),
            Error::NoName { tag } => Some(format!("add `{tag}` to the names of the tag ids")),
            _ => None,
        }
    }
}

/// The number of bytes of a line that an excerpt contains on each side of a problem.
const KEPT_AROUND: usize = 400;

/// Cuts out the part of a line around a problem. Sets the column of the problem, and makes its span
/// relative to the excerpt.
fn cut_excerpt(line: &str, problem: &mut Problem) -> String {
    let start = line.floor_char_boundary(problem.span.start.min(line.len()));
    let end = line.ceil_char_boundary(problem.span.end.min(line.len())).max(start);
    let from = line.floor_char_boundary(start.saturating_sub(KEPT_AROUND));
    let to = line.ceil_char_boundary((end.min(start + KEPT_AROUND) + KEPT_AROUND).min(line.len()));
    problem.column = line[..start].chars().count() + 1;
    problem.span = start - from..end.min(to) - from;
    line[from..to].to_owned()
}
