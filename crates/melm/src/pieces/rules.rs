//! The parser of `tokenizer.json`.

use std::collections::BTreeMap;
use std::path::Path;

use serde::Deserialize;
use serde_json::value::RawValue;
use tokenizers::models::bpe::BPE;
use tokenizers::models::unigram::Unigram;
use tokenizers::pre_tokenizers::byte_level::ByteLevel;
use tokenizers::{NormalizerWrapper, PreTokenizerWrapper, Tokenizer};

use super::tokenizer::SpecialPieces;
use crate::Error;

/// The supported kinds of tokenizer. The alignment of pieces with tokens is tested for these kinds only.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TokenizerKind {
    /// Unigram pieces, as XLM-R has.
    Unigram,
    /// Byte-level BPE pieces, as `RoBERTa` has.
    ByteLevel,
}

impl TokenizerKind {
    /// The first character of the pieces that begin a word.
    pub(super) fn word_start(self) -> char {
        match self {
            Self::Unigram => '\u{2581}',
            Self::ByteLevel => '\u{120}',
        }
    }
}

/// A parsed `tokenizer.json`. The added pieces are not passed to `tokenizer`.
pub(super) struct Rules {
    pub(super) tokenizer: Tokenizer,
    pub(super) kind: TokenizerKind,
    /// The pieces of the unigram or BPE model, by id.
    pub(super) pieces: Vec<String>,
    /// The added pieces, special or not, with their ids.
    pub(super) added: Vec<(String, u32)>,
}

/// The reason why a file was refused.
pub(super) enum ParseError {
    Json(serde_json::Error),
    Unsupported(String),
}

impl ParseError {
    /// Converts to an error that names the file.
    pub(super) fn in_file(self, path: &Path) -> Error {
        let path = path.to_path_buf();
        match self {
            Self::Json(source) => Error::TokenizerJson { path, source },
            Self::Unsupported(found) => Error::TokenizerKind { path, found },
        }
    }
}

impl From<serde_json::Error> for ParseError {
    fn from(source: serde_json::Error) -> Self {
        Self::Json(source)
    }
}

impl From<tokenizers::Error> for ParseError {
    fn from(source: tokenizers::Error) -> Self {
        Self::Unsupported(source.to_string())
    }
}

/// The parts of the file that segmentation needs. Truncation, padding and the template of special pieces are not read:
/// `Tokenizer::encode` never truncates, and places special pieces itself.
#[derive(Deserialize)]
struct TokenizerJson {
    #[serde(default)]
    added_tokens: Vec<AddedTokenJson>,
    normalizer: Option<Box<RawValue>>,
    pre_tokenizer: Option<Box<RawValue>>,
    model: Box<RawValue>,
}

#[derive(Deserialize)]
struct AddedTokenJson {
    id: u32,
    content: String,
}

#[derive(Deserialize)]
struct ModelHeaderJson {
    #[serde(rename = "type")]
    name: Option<String>,
    dropout: Option<f32>,
}

#[derive(Deserialize)]
struct UnigramJson {
    vocab: Vec<(String, f64)>,
    unk_id: Option<usize>,
    #[serde(default)]
    byte_fallback: bool,
}

#[derive(Deserialize)]
struct BpeJson {
    vocab: BTreeMap<String, u32>,
}

pub(super) fn parse(text: &str) -> Result<Rules, ParseError> {
    let parts: TokenizerJson = serde_json::from_str(text)?;
    let model: ModelHeaderJson = serde_json::from_str(parts.model.get())?;
    if model.dropout.is_some_and(|rate| rate != 0.0) {
        return Err(ParseError::Unsupported("random dropout of merges".to_owned()));
    }
    let added: Vec<_> =
        parts.added_tokens.into_iter().map(|added| (added.content, added.id)).collect();
    let split: Option<PreTokenizerWrapper> = optional(parts.pre_tokenizer.as_deref())?;
    let (mut tokenizer, kind, pieces, split) = match (model.name.as_deref(), split) {
        (Some("Unigram"), Some(split)) => {
            let (tokenizer, pieces) = unigram(serde_json::from_str(parts.model.get())?, &added)?;
            (tokenizer, TokenizerKind::Unigram, pieces, split)
        }
        (Some("BPE"), Some(PreTokenizerWrapper::ByteLevel(split))) => {
            let model: BPE = serde_json::from_str(parts.model.get())?;
            let pieces = pieces_by_id(serde_json::from_str(parts.model.get())?)?;
            // RoBERTa's file adds no space before the first token of a text. Here every token is inside a sentence,
            // so every token gets a space.
            let split = ByteLevel::new(true, split.trim_offsets, split.use_regex).into();
            (Tokenizer::new(model), TokenizerKind::ByteLevel, pieces, split)
        }
        (name, _) => {
            let name = name.unwrap_or("unknown");
            return Err(ParseError::Unsupported(format!("a tokenizer of the kind `{name}`")));
        }
    };
    let normalizer: Option<NormalizerWrapper> = optional(parts.normalizer.as_deref())?;
    tokenizer.with_normalizer(normalizer)?;
    tokenizer.with_pre_tokenizer(Some(split));
    Ok(Rules { tokenizer, kind, pieces, added })
}

fn optional<T: serde::de::DeserializeOwned>(
    part: Option<&RawValue>,
) -> Result<Option<T>, serde_json::Error> {
    part.map_or(Ok(None), |part| serde_json::from_str(part.get()))
}

/// Builds a unigram model that cannot find added pieces in a text. Returns the model, and its pieces by id.
///
/// In Hugging Face's files, `<mask>` is a unigram piece with a better score than any other. Hugging Face splits it
/// off before the model runs. Here the text of such pieces gets a space in front. The model never reads a token that
/// contains a space, so these pieces never match. All ids and all other scores stay the same.
fn unigram(
    model: UnigramJson,
    added: &[(String, u32)],
) -> Result<(Tokenizer, Vec<String>), ParseError> {
    let UnigramJson { mut vocab, unk_id, byte_fallback } = model;
    if unk_id.is_none() {
        return Err(ParseError::Unsupported("a unigram model without `unk_id`".to_owned()));
    }
    let pieces: Vec<String> = vocab.iter().map(|(piece, _)| piece.clone()).collect();
    for (id, (piece, _)) in vocab.iter_mut().enumerate() {
        let is_added =
            added.iter().any(|(content, added)| *added as usize == id && content == piece);
        if is_added || SpecialPieces::TEXTS.contains(&piece.as_str()) {
            piece.insert(0, ' ');
        }
    }
    Ok((Tokenizer::new(Unigram::from(vocab, unk_id, byte_fallback)?), pieces))
}

/// Returns the pieces in the order of their ids, which must be 0, 1, 2 …
fn pieces_by_id(BpeJson { vocab }: BpeJson) -> Result<Vec<String>, ParseError> {
    let mut pieces: Vec<_> = vocab.into_iter().map(|(piece, id)| (id, piece)).collect();
    pieces.sort_unstable();
    let has_no_gaps = pieces.iter().enumerate().all(|(at, (id, _))| at == *id as usize);
    if !has_no_gaps {
        return Err(ParseError::Unsupported("a vocabulary with gaps".to_owned()));
    }
    Ok(pieces.into_iter().map(|(_, piece)| piece).collect())
}
