//! What can be wrong with a parquet file.

use thiserror::Error;

/// The reason why bytes are not a parquet file with tokens and tags. The message says what is wrong; [`Self::cure`]
/// says what to do. Rows are counted from 1.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ParquetFault {
    /// The bytes are not a parquet file.
    #[error("the file is not a parquet file: {0}")]
    NotParquet(String),
    /// A part of the file cannot be read.
    #[error("the parquet file is damaged: {0}")]
    Damaged(String),
    /// The file contains more than a limit.
    #[error("the parquet file contains more than {limit}")]
    TooLarge {
        /// The limit, such as `1024 MiB of data`.
        limit: String,
    },
    /// The file does not have the column of the tokens or of the tags.
    #[error("the parquet file has no column `{column}`: it has {found}")]
    NoColumn {
        /// The column, or the usual names of such a column.
        column: String,
        /// The columns of the file.
        found: String,
    },
    /// A column does not contain lists of the right type.
    #[error("the column `{column}` is not a list of {expected}")]
    WrongType {
        /// The column.
        column: String,
        /// The expected type of the elements.
        expected: &'static str,
    },
    /// A list contains a null.
    #[error("row {row}: the list `{column}` contains a null")]
    Null {
        /// The column.
        column: String,
        /// The row.
        row: usize,
    },
    /// A string is not UTF-8.
    #[error("row {row}: a string of `{column}` is not UTF-8")]
    NotUtf8 {
        /// The column.
        column: String,
        /// The row.
        row: usize,
    },
    /// The file is compressed in a way that is not supported.
    #[error("the column `{column}` is compressed with {found}; only Snappy is supported")]
    Compression {
        /// The column.
        column: String,
        /// The name of the compression.
        found: String,
    },
    /// The names of the classes are missing or are not tags.
    #[error("the tags in `{column}` are ids, but the file does not contain their names")]
    NoNames {
        /// The column.
        column: String,
    },
}

impl ParquetFault {
    /// Returns advice for the user.
    pub fn cure(&self) -> &'static str {
        match self {
            Self::NotParquet(_) => {
                "pass a file that `Dataset.to_parquet` wrote; pass other formats with `--format`"
            }
            Self::Damaged(_) => "the file is truncated or damaged: download or write it again",
            Self::TooLarge { .. } => "split the data set: `Dataset.shard` makes smaller parts",
            Self::NoColumn { .. } => "pass the columns with `--tokens-key` and `--tags-key`",
            Self::WrongType { .. } => {
                "write tokens as a list of strings, and tags as a list of strings or of ids"
            }
            Self::Null { .. } => "remove the row, or give each token a text and a tag",
            Self::NotUtf8 { .. } => "write the tokens again as UTF-8",
            Self::Compression { .. } => {
                "write it again with `Dataset.to_parquet`, or with \
                 `pyarrow.parquet.write_table(table, FILE, compression=\"snappy\")`"
            }
            Self::NoNames { .. } => {
                "pass the names in order with `--names O,B-PER,I-PER,…` or `--names FILE`"
            }
        }
    }
}
