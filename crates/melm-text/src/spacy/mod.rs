//! spaCy's `DocBin`, the format of `.spacy` files: documents with their tokens, spaces and mentions.
//!
//! A file is zlib over `MessagePack`: a list of attributes, a row of 64-bit numbers for each token, the number of tokens
//! of each document, whether a space follows each token, and all strings. Numbers in the rows are ids of strings.

mod fault;
mod hash;
mod msgpack;
mod read;
mod write;

pub use fault::DocBinFault;
pub use read::{DocBin, read_doc_bin, read_doc_bin_within};
pub use write::DocBinWriter;

use std::ops::Range;
use std::sync::Arc;

/// The id of the attribute with the text of a token.
const ORTH: u64 = 65;
/// The id of the attribute with the normal form of a token, which spaCy always sets.
const NORM: u64 = 67;
/// The id of the attribute that says where sentences start: 1 for the first token of a sentence.
const SENT_START: u64 = 80;
/// The id of the attribute that says where mentions start and continue.
const ENT_IOB: u64 = 77;
/// The id of the attribute with the entity type of a token.
const ENT_TYPE: u64 = 78;

/// Values of the attribute `ENT_IOB`.
mod iob {
    /// Nobody has said whether the token belongs to a mention.
    pub(super) const MISSING: u64 = 0;
    /// The token continues a mention.
    pub(super) const INSIDE: u64 = 1;
    /// The token belongs to no mention.
    pub(super) const OUTSIDE: u64 = 2;
    /// The token starts a mention.
    pub(super) const BEGIN: u64 = 3;
}

/// Values of the attribute `SENT_START`.
mod sent_start {
    /// Nobody has said whether the token starts a sentence.
    pub(super) const MISSING: u64 = 0;
    /// The token starts a sentence.
    pub(super) const START: u64 = 1;
    /// The token does not start a sentence: -1 as an unsigned number.
    pub(super) const INNER: u64 = u64::MAX;
}

/// One document. Its text is exactly that of `Doc.text` in spaCy.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SpacyDoc {
    /// The text.
    pub text: String,
    /// The bytes of `text` that are a token, for each token. Tokens may be white space.
    pub tokens: Vec<Range<usize>>,
    /// The mentions, in order. They do not overlap.
    pub mentions: Vec<SpacyMention>,
    /// The tokens of each sentence, if spaCy knows them.
    pub sentences: Option<Vec<Range<usize>>>,
    /// False if spaCy does not know where the spaces are. The text then has a space after each token.
    pub has_spaces: bool,
}

/// A mention of a document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SpacyMention {
    /// The tokens.
    pub tokens: Range<usize>,
    /// The name of the entity type.
    pub entity_type: Arc<str>,
}

#[cfg(test)]
mod tests;
