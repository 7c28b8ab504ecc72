//! Parquet files as Hugging Face `datasets` writes them: a row for each sentence, with a list of tokens and a list of
//! tags. Tags are strings, or ids of classes whose names are in the metadata of the file.

mod fault;
mod pages;
mod read;
mod write;

pub use fault::ParquetFault;
pub use read::{GivenNames, ParquetRow, ParquetTable, TagCells, read_table, read_table_within};
pub use write::{TagColumn, TaggedRow, write_table};

/// The key of the metadata with the features of a data set.
const METADATA_KEY: &str = "huggingface";

#[cfg(test)]
mod tests;
