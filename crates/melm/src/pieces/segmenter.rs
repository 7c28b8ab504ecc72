//! The rules of a `tokenizer.json`, run on one token at a time and blind to added pieces.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

use tokenizers::pre_tokenizers::byte_level::ByteLevel;
use tokenizers::{Decoder, Tokenizer};

use super::rules::{self, Kind, Rules};
use crate::Error;

/// Cuts tokens into pieces of the model's own vocabulary.
pub(super) struct Segmenter {
    tokenizer: Tokenizer,
    kind: Kind,
}

/// What a `tokenizer.json` holds.
pub(super) struct Opened {
    pub(super) segmenter: Segmenter,
    /// The model's pieces by id.
    pub(super) pieces: Vec<String>,
    /// Added pieces, special or not, with their ids.
    pub(super) added: Vec<(String, u32)>,
}

impl Segmenter {
    /// Parses the text of a `tokenizer.json`; `path` is where it came from, for messages.
    pub(super) fn parse(path: &Path, text: &str) -> Result<Opened, Error> {
        let rules = survive(|| rules::parse(text));
        let rules =
            rules.unwrap_or_else(|| Err(rules::Problem::Unsupported("a damaged rule".to_owned())));
        let Rules { tokenizer, kind, pieces, added } = rules.map_err(|problem| problem.at(path))?;
        Ok(Opened { segmenter: Self { tokenizer, kind }, pieces, added })
    }

    /// The pieces of one token; none if it normalises to nothing.
    pub(super) fn segment(&self, token: &str) -> Result<Vec<u32>, Error> {
        let encoding = survive(|| self.tokenizer.encode_fast(vec![token], false));
        match encoding.unwrap_or_else(|| Err("a damaged rule".into())) {
            Ok(encoding) => Ok(encoding.get_ids().to_vec()),
            Err(source) => Err(Error::Segment { token: token.to_owned(), source }),
        }
    }

    pub(super) fn begins_word(&self, piece: &str) -> bool {
        piece.starts_with(self.kind.word_start())
    }

    /// The text that a piece adds to its word; `None` if by itself it is no text, as part of a character.
    pub(super) fn text(&self, piece: &str) -> Option<String> {
        let piece = piece.strip_prefix(self.kind.word_start()).unwrap_or(piece);
        let text = match self.kind {
            Kind::Unigram => piece.replace(self.kind.word_start(), " "),
            Kind::ByteLevel => ByteLevel::default().decode(vec![piece.to_owned()]).ok()?,
        };
        (!text.contains(char::REPLACEMENT_CHARACTER)).then_some(text)
    }

    /// The text that pieces spell, without the space before it.
    pub(super) fn spell(&self, pieces: Vec<String>) -> String {
        let text = match self.kind {
            Kind::Unigram => pieces.concat().replace(self.kind.word_start(), " "),
            Kind::ByteLevel => ByteLevel::default().decode(pieces).unwrap_or_default(),
        };
        text.trim().to_owned()
    }
}

/// Runs code of the `tokenizers` crate, which panics on some damaged rules: a file of a stranger may not stop us.
///
/// What the closure borrows is only read, or lost with the panic.
fn survive<T>(run: impl FnOnce() -> T) -> Option<T> {
    catch_unwind(AssertUnwindSafe(run)).ok()
}
