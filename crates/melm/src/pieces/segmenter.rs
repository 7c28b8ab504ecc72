//! Segmentation of single tokens by the rules of a `tokenizer.json`, without the added pieces.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

use tokenizers::pre_tokenizers::byte_level::ByteLevel;
use tokenizers::{Decoder, Tokenizer};

use super::rules::{self, ParseError, Rules, TokenizerKind};
use crate::Error;

/// Splits tokens into pieces of the model's own vocabulary.
pub(super) struct Segmenter {
    tokenizer: Tokenizer,
    kind: TokenizerKind,
}

/// The content of a `tokenizer.json`.
pub(super) struct ParsedTokenizer {
    pub(super) segmenter: Segmenter,
    /// The pieces of the unigram or BPE model, by id.
    pub(super) pieces: Vec<String>,
    /// The added pieces, special or not, with their ids.
    pub(super) added: Vec<(String, u32)>,
}

impl Segmenter {
    /// Parses the text of a `tokenizer.json`. `path` is used in error messages.
    pub(super) fn parse(path: &Path, text: &str) -> Result<ParsedTokenizer, Error> {
        let rules = catch_panic(|| rules::parse(text));
        let rules =
            rules.unwrap_or_else(|| Err(ParseError::Unsupported("a damaged rule".to_owned())));
        let Rules { tokenizer, kind, pieces, added } =
            rules.map_err(|error| error.in_file(path))?;
        Ok(ParsedTokenizer { segmenter: Self { tokenizer, kind }, pieces, added })
    }

    /// Returns the pieces of one token. The result is empty if the token is normalised to nothing.
    pub(super) fn segment(&self, token: &str) -> Result<Vec<u32>, Error> {
        let encoding = catch_panic(|| self.tokenizer.encode_fast(vec![token], false));
        match encoding.unwrap_or_else(|| Err("a damaged rule".into())) {
            Ok(encoding) => Ok(encoding.get_ids().to_vec()),
            Err(source) => Err(Error::Segment { token: token.to_owned(), source }),
        }
    }

    /// Returns true if the piece begins a word.
    pub(super) fn begins_word(&self, piece: &str) -> bool {
        piece.starts_with(self.kind.word_start())
    }

    /// Returns the text that a piece adds to its word, or `None` for a piece that is only part of a character.
    pub(super) fn text(&self, piece: &str) -> Option<String> {
        let piece = piece.strip_prefix(self.kind.word_start()).unwrap_or(piece);
        let text = match self.kind {
            TokenizerKind::Unigram => piece.replace(self.kind.word_start(), " "),
            TokenizerKind::ByteLevel => ByteLevel::default().decode(vec![piece.to_owned()]).ok()?,
        };
        (!text.contains(char::REPLACEMENT_CHARACTER)).then_some(text)
    }

    /// Returns the text that pieces spell, without the space before it.
    pub(super) fn spell(&self, pieces: Vec<String>) -> String {
        let text = match self.kind {
            TokenizerKind::Unigram => pieces.concat().replace(self.kind.word_start(), " "),
            TokenizerKind::ByteLevel => ByteLevel::default().decode(pieces).unwrap_or_default(),
        };
        text.trim().to_owned()
    }
}

/// Runs code of the `tokenizers` crate, which panics on some damaged rules. Returns `None` after a panic.
///
/// `AssertUnwindSafe` is correct because the closures only read what they borrow.
fn catch_panic<T>(run: impl FnOnce() -> T) -> Option<T> {
    catch_unwind(AssertUnwindSafe(run)).ok()
}
