//! CoNLL files: one row for each token, the tag in one of its columns, an empty line after each
//! sentence.
//!
//! All other columns, and the separators, are kept as they are: writing replaces only the token and
//! the tag inside the text of the row.

mod layout;
mod reader;
mod writer;

pub use layout::{Layout, Separator};
pub use reader::ConllReader;
pub use writer::ConllWriter;

pub(crate) use layout::is_document_start;
pub(crate) use writer::{escape_byte_order_mark, push_row};
