//! CoNLL files: one row for each token, with the tag in one column, and an empty line after each sentence.
//!
//! Other columns and separators do not change: a writer replaces only token and tag in the text of a row.

mod layout;
mod reader;
mod writer;

pub use layout::{Layout, Separator};
pub use reader::ConllReader;
pub use writer::ConllWriter;

pub(crate) use layout::is_document_start;
pub(crate) use writer::{escape_byte_order_mark, push_row};
