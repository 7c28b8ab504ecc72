//! Text with spans: the form of labelled data in annotation tools.
//!
//! - [`OffsetUnit`] and [`OffsetMap`] convert offsets.
//! - [`Document`] is a text with spans, tokens and sentences. A span that cuts a token splits it, and nothing is lost:
//!   text to tokens to text, and spans to tags to spans, are identities.
//! - [`DocumentsBuilder`] checks the records of a file. [`Documents`] are the result, with all counts.

mod builder;
mod document;
mod documents;
mod fault;
mod offsets;
mod overlap;
mod plain;
mod reader;
mod stored;
mod tokens;

pub use builder::DocumentsBuilder;
pub(crate) use builder::document_tokenizer;
pub use document::{Document, Metadata, Span};
pub use documents::{Documents, Place, RawDocument, RawSpan, SpanCounts};
pub use fault::{MismatchCause, SpanFault};
pub use offsets::{OffsetFault, OffsetMap, OffsetUnit};
pub use overlap::OverlapRule;
pub use plain::{TextDoubt, TextKind, read_plain};
pub use reader::DocumentReader;
pub(crate) use reader::for_each_sentence;

#[cfg(test)]
mod tests;
