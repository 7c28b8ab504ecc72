//! What can be wrong with a `DocBin`.

use thiserror::Error;

/// The reason why bytes are not a `DocBin` with mentions. The message says what is wrong; [`Self::cure`] says what to
/// do. Documents and tokens are counted from 1.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum DocBinFault {
    /// The bytes are not compressed by zlib, or the data is not that of a `DocBin`.
    #[error("the file is not a spaCy DocBin: {0}")]
    NotDocBin(String),
    /// The compressed data ends too early, or bytes follow it.
    #[error("the compressed data of the DocBin is damaged: {0}")]
    Damaged(String),
    /// The data is larger than a limit.
    #[error("the DocBin contains more than {limit}")]
    TooLarge {
        /// The limit, such as `64 MiB of data in 1,000 bytes`.
        limit: String,
    },
    /// The file lacks a part.
    #[error("the DocBin has no `{0}`")]
    NoPart(&'static str),
    /// The documents have no mentions, because the attribute was not stored.
    #[error("the DocBin does not store the attribute {0}")]
    NoAttribute(&'static str),
    /// Two parts of the file do not fit together.
    #[error("the parts of the DocBin do not fit together: {0}")]
    Mismatch(String),
    /// A row has the id of a string that is not in the file.
    #[error("document {document}, token {token}: the DocBin has no string with the id {id}")]
    NoString {
        /// The document.
        document: usize,
        /// The token.
        token: usize,
        /// The id.
        id: u64,
    },
    /// A mention continues, but no mention has started. spaCy refuses this too.
    #[error("document {document}, token {token}: a mention continues that has not started")]
    NotStarted {
        /// The document.
        document: usize,
        /// The token.
        token: usize,
    },
    /// `ENT_IOB` has a value that spaCy does not know.
    #[error("document {document}, token {token}: ENT_IOB is {value}, expected 0 to 3")]
    UnknownIob {
        /// The document.
        document: usize,
        /// The token.
        token: usize,
        /// The value.
        value: u64,
    },
}

impl DocBinFault {
    /// Returns advice for the user.
    pub fn cure(&self) -> &'static str {
        match self {
            Self::NotDocBin(_) => {
                "pass a file that `DocBin.to_disk` wrote; `spacy convert` makes one"
            }
            Self::Damaged(_) => "the file is truncated or damaged: copy or write it again",
            Self::TooLarge { .. } => "split the documents over several files",
            Self::NoPart(_) | Self::Mismatch(_) | Self::NoString { .. } => {
                "the file is damaged: write it again with spaCy"
            }
            Self::NoAttribute(_) => {
                "write the file again with `DocBin(attrs=[\"ENT_IOB\", \"ENT_TYPE\"])`"
            }
            Self::NotStarted { .. } | Self::UnknownIob { .. } => {
                "set the mentions again with `doc.set_ents`, and write the file again"
            }
        }
    }
}
