//! Segmentation of single tokens by the rules of a `tokenizer.json`, without the added pieces.

use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

use tokenizers::pre_tokenizers::byte_level::ByteLevel;
use tokenizers::{
    Decoder, Model, NormalizedString, Normalizer, OffsetReferential, OffsetType,
    PreTokenizedString, PreTokenizer,
};

use super::bounds;
use super::rules::{self, ParseError, Rules, TokenizerKind};
use crate::Error;

/// Begins a word in unigram models and in BPE models with byte fallback.
const WORD_START: char = '\u{2581}';
/// Begins a word in byte-level models.
const BYTE_WORD_START: char = '\u{120}';

/// Splits tokens into pieces of the model's own vocabulary.
pub(super) struct Segmenter {
    rules: Rules,
}

impl Segmenter {
    /// Parses the text of a `tokenizer.json`. `path` is used in error messages.
    pub(super) fn parse(path: &Path, text: &str) -> Result<Self, Error> {
        let rules = catch_panic(|| rules::parse(text));
        let rules =
            rules.unwrap_or_else(|| Err(ParseError::Unsupported("a damaged rule".to_owned())));
        let segmenter = Self { rules: rules.map_err(|error| error.in_file(path))? };
        // Rules that blow up are refused here if a visible ASCII character is enough to cause it.
        let probe: String = ('!'..='~').collect();
        if let Err(error) = segmenter.run(|this| this.split_words(&probe)) {
            return Err(ParseError::Unsupported(error.to_string()).in_file(path));
        }
        Ok(segmenter)
    }

    /// The pieces of the model, by id.
    pub(super) fn pieces(&self) -> &[String] {
        &self.rules.pieces
    }

    /// The added pieces of the file, special or not, with their ids.
    pub(super) fn added(&self) -> &[(String, u32)] {
        &self.rules.added
    }

    /// Returns the pieces of one token. The result is empty if the token is normalised to nothing.
    pub(super) fn segment(&self, token: &str) -> Result<Vec<u32>, Error> {
        let pieces = self.run(|this| {
            let words = this.split_pieces(token)?;
            let words = words.get_splits(OffsetReferential::Normalized, OffsetType::None);
            let pieces = words.into_iter().filter_map(|(_, _, pieces)| pieces.as_ref());
            Ok(pieces.flatten().map(|piece| piece.id).collect())
        });
        pieces.map_err(|source| Error::Segment { token: token.to_owned(), source })
    }

    /// Returns, for each piece of a token, the range of the token's bytes that it was read from, as Hugging Face's
    /// `offset_mapping` has it in characters. Ranges of neighbours may overlap. Bytes that the rules remove are in no
    /// range.
    pub(super) fn ranges(&self, token: &str) -> Result<Vec<Range<usize>>, Error> {
        let n_before = self.n_inserted_before();
        let ranges = self.run(|this| {
            let encoding = this.split_pieces(token)?.into_encoding(None, 0, OffsetType::Byte)?;
            let in_token = |offset: usize| offset.saturating_sub(n_before);
            let offsets = encoding.get_offsets().iter();
            Ok(offsets.map(|(start, end)| in_token(*start)..in_token(*end)).collect())
        });
        ranges.map_err(|source| Error::Segment { token: token.to_owned(), source })
    }

    /// Runs all rules on a token.
    fn split_pieces(&self, token: &str) -> tokenizers::Result<PreTokenizedString> {
        let mut words = self.split_words(token)?;
        words.tokenize(|word| self.rules.model.tokenize(word.get()))?;
        Ok(words)
    }

    /// Runs the normalizers and the splitting rules. Fails if they extend the token beyond the bound.
    fn split_words(&self, token: &str) -> tokenizers::Result<PreTokenizedString> {
        let limit = bounds::max_normalized(token.len());
        let check = |n_bytes: usize| match n_bytes {
            n if n <= limit => Ok(()),
            _ => Err(format!("a rule that makes the text longer than {limit} bytes")),
        };
        let mut text = self.in_sentence(token);
        for normalizer in &self.rules.normalizers {
            normalizer.normalize(&mut text)?;
            check(text.get().len())?;
        }
        let mut words = PreTokenizedString::from(text);
        // Removes an empty text, before a rule inserts something into it.
        words.split(|_, text| Ok(std::iter::once(text)))?;
        for splitter in &self.rules.splitters {
            splitter.pre_tokenize(&mut words)?;
            let words = words.get_splits(OffsetReferential::Normalized, OffsetType::None);
            check(words.iter().map(|(word, ..)| word.len()).sum())?;
        }
        Ok(words)
    }

    /// Returns the text that the normalizers read for a token inside a sentence.
    fn in_sentence(&self, token: &str) -> NormalizedString {
        let before = " ".repeat(self.n_inserted_before());
        NormalizedString::from(before + token)
    }

    /// Returns the number of spaces that are inserted before a token.
    fn n_inserted_before(&self) -> usize {
        // The rules of Gemma turn spaces into `▁` and insert none.
        usize::from(self.rules.kind == TokenizerKind::ByteFallback)
    }

    /// Runs rules, which panic if they are damaged.
    fn run<T>(&self, rules: impl FnOnce(&Self) -> tokenizers::Result<T>) -> tokenizers::Result<T> {
        catch_panic(|| rules(self)).unwrap_or_else(|| Err("a damaged rule".into()))
    }

    /// Returns true if the normalizers remove upper case.
    pub(super) fn is_uncased(&self) -> bool {
        let words = self.run(|this| this.split_words("Ab"));
        words.is_ok_and(|words| {
            let words = words.get_splits(OffsetReferential::Normalized, OffsetType::None);
            words.iter().any(|(word, ..)| word.contains("ab"))
        })
    }

    /// Returns true if the piece begins a word.
    pub(super) fn begins_word(&self, piece: &str) -> bool {
        match &self.rules.kind {
            TokenizerKind::WordPiece { prefix } => !piece.starts_with(prefix.as_str()),
            kind => piece.starts_with(kind.word_start()),
        }
    }

    /// Returns the text that a piece adds to its word, or `None` for a piece that is only part of a character.
    pub(super) fn text(&self, piece: &str) -> Option<String> {
        let kind = &self.rules.kind;
        let text = match kind {
            TokenizerKind::WordPiece { prefix } => {
                piece.strip_prefix(prefix.as_str()).unwrap_or(piece).to_owned()
            }
            TokenizerKind::ByteFallback if fallback_byte(piece).is_some() => return None,
            TokenizerKind::ByteLevel => {
                let piece = piece.strip_prefix(BYTE_WORD_START).unwrap_or(piece);
                ByteLevel::default().decode(vec![piece.to_owned()]).ok()?
            }
            TokenizerKind::Unigram | TokenizerKind::ByteFallback => {
                piece.strip_prefix(WORD_START).unwrap_or(piece).replace(WORD_START, " ")
            }
        };
        (!text.contains(char::REPLACEMENT_CHARACTER)).then_some(text)
    }

    /// Returns the text that pieces spell, without the space before it.
    pub(super) fn spell(&self, pieces: &[&str]) -> String {
        let text = match &self.rules.kind {
            TokenizerKind::ByteLevel => {
                let pieces = pieces.iter().map(|piece| (*piece).to_owned()).collect();
                ByteLevel::default().decode(pieces).unwrap_or_default()
            }
            TokenizerKind::Unigram => pieces.concat().replace(WORD_START, " "),
            TokenizerKind::ByteFallback => spell_bytes(pieces).replace(WORD_START, " "),
            // The words of a token, such as `O`, `'` and `Neill`, have no space between them.
            TokenizerKind::WordPiece { prefix } => pieces
                .iter()
                .map(|piece| piece.strip_prefix(prefix.as_str()).unwrap_or(piece))
                .collect(),
        };
        text.trim().to_owned()
    }

    /// Returns true if the rules can split a text so that the piece has its place in a word. For example, BERT's rules
    /// never yield `[unused1]` or `##.`.
    pub(super) fn is_reachable(&self, piece: &str) -> bool {
        let TokenizerKind::WordPiece { prefix } = &self.rules.kind else { return true };
        match piece.strip_prefix(prefix.as_str()) {
            Some(text) => self.n_words(&format!("a{text}")) == 1,
            None => self.n_words(piece) == 1,
        }
    }

    /// Returns true if the rules always make the text a word of its own, as BERT's do for punctuation and Chinese
    /// characters. Returns `None` if the pieces of a token are not split into words.
    pub(super) fn stands_alone(&self, text: &str) -> Option<bool> {
        matches!(self.rules.kind, TokenizerKind::WordPiece { .. })
            .then(|| self.n_words(&format!("a{text}a")) > 1)
    }

    fn n_words(&self, text: &str) -> usize {
        if text.bytes().all(|byte| byte.is_ascii_alphanumeric()) {
            return 1;
        }
        let words = self.run(|this| this.split_words(text));
        words.map_or(0, |words| {
            words.get_splits(OffsetReferential::Normalized, OffsetType::None).len()
        })
    }
}

impl TokenizerKind {
    /// The first character of the pieces that begin a word.
    fn word_start(&self) -> char {
        if *self == Self::ByteLevel { BYTE_WORD_START } else { WORD_START }
    }
}

/// Returns the text in Unicode normal form C, in which a letter and its accents, or the parts of a Korean syllable, are
/// one character if there is such a character.
pub(super) fn compose(text: &str) -> String {
    let mut text = NormalizedString::from(text);
    text.nfc();
    text.get().to_owned()
}

/// Returns the byte that a piece such as `<0xE2>` stands for.
fn fallback_byte(piece: &str) -> Option<u8> {
    let digits = piece.strip_prefix("<0x")?.strip_suffix('>')?;
    if digits.len() == 2 { u8::from_str_radix(digits, 16).ok() } else { None }
}

/// Joins pieces, of which some stand for bytes.
fn spell_bytes(pieces: &[&str]) -> String {
    let mut bytes = Vec::new();
    for piece in pieces {
        match fallback_byte(piece) {
            Some(byte) => bytes.push(byte),
            None => bytes.extend_from_slice(piece.as_bytes()),
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Runs code of the `tokenizers` crate, which panics on some damaged rules. Returns `None` after a panic.
///
/// `AssertUnwindSafe` is correct because the closures only read what they borrow.
fn catch_panic<T>(run: impl FnOnce() -> T) -> Option<T> {
    catch_unwind(AssertUnwindSafe(run)).ok()
}
