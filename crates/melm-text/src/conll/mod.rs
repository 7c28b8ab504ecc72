//! CoNLL files: one token a row with its tag in a column, an empty line after each sentence.
//!
//! Whatever else stands in a row is kept as it was: writing a sentence back replaces the token and
//! the tag inside the row's own text.

mod layout;
mod reader;
mod writer;

pub use layout::{Layout, Separator};
pub use reader::ConllReader;
pub use writer::{ConllWriter, push_row};

pub(crate) use layout::is_document_start;
pub(crate) use writer::guard_mark;
