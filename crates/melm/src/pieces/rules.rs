//! Parsing `tokenizer.json`.

use std::collections::BTreeMap;
use std::path::Path;

use serde::Deserialize;
use serde_json::value::RawValue;
use tokenizers::models::bpe::BPE;
use tokenizers::models::unigram::Unigram;
use tokenizers::pre_tokenizers::byte_level::ByteLevel;
use tokenizers::{NormalizerWrapper, PreTokenizerWrapper, Tokenizer};

use super::tokenizer::Specials;
use crate::Error;

/// The two kinds of pieces whose alignment is tested.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// Those of XLM-R.
    Unigram,
    /// Those of `RoBERTa`.
    ByteLevel,
}

impl Kind {
    /// How a piece says that it begins a word.
    pub(super) fn word_start(self) -> char {
        match self {
            Self::Unigram => '\u{2581}',
            Self::ByteLevel => '\u{120}',
        }
    }
}

/// The parsed file: rules that know nothing of the added pieces.
pub(super) struct Rules {
    pub(super) tokenizer: Tokenizer,
    pub(super) kind: Kind,
    pub(super) pieces: Vec<String>,
    pub(super) added: Vec<(String, u32)>,
}

/// Why a file was refused.
pub(super) enum Problem {
    Json(serde_json::Error),
    Unsupported(String),
}

impl Problem {
    pub(super) fn at(self, path: &Path) -> Error {
        let path = path.to_path_buf();
        match self {
            Self::Json(source) => Error::TokenizerJson { path, source },
            Self::Unsupported(found) => Error::TokenizerKind { path, found },
        }
    }
}

impl From<serde_json::Error> for Problem {
    fn from(source: serde_json::Error) -> Self {
        Self::Json(source)
    }
}

impl From<tokenizers::Error> for Problem {
    fn from(source: tokenizers::Error) -> Self {
        Self::Unsupported(source.to_string())
    }
}

/// The parts that segmentation needs. Truncation, padding and the template of special pieces are left out on purpose:
/// sentences are never cut here, and special pieces are placed by us.
#[derive(Deserialize)]
struct Parts {
    #[serde(default)]
    added_tokens: Vec<Added>,
    normalizer: Option<Box<RawValue>>,
    pre_tokenizer: Option<Box<RawValue>>,
    model: Box<RawValue>,
}

#[derive(Deserialize)]
struct Added {
    id: u32,
    content: String,
}

#[derive(Deserialize)]
struct ModelKind {
    #[serde(rename = "type")]
    name: Option<String>,
    dropout: Option<f32>,
}

#[derive(Deserialize)]
struct UnigramParts {
    vocab: Vec<(String, f64)>,
    unk_id: Option<usize>,
    #[serde(default)]
    byte_fallback: bool,
}

#[derive(Deserialize)]
struct BpeVocabulary {
    vocab: BTreeMap<String, u32>,
}

pub(super) fn parse(text: &str) -> Result<Rules, Problem> {
    let parts: Parts = serde_json::from_str(text)?;
    let model: ModelKind = serde_json::from_str(parts.model.get())?;
    if model.dropout.is_some_and(|rate| rate != 0.0) {
        return Err(Problem::Unsupported("random dropout of merges".to_owned()));
    }
    let added: Vec<_> =
        parts.added_tokens.into_iter().map(|added| (added.content, added.id)).collect();
    let split: Option<PreTokenizerWrapper> = optional(parts.pre_tokenizer.as_deref())?;
    let (mut tokenizer, kind, pieces, split) = match (model.name.as_deref(), split) {
        (Some("Unigram"), Some(split)) => {
            let (tokenizer, pieces) = unigram(serde_json::from_str(parts.model.get())?, &added)?;
            (tokenizer, Kind::Unigram, pieces, split)
        }
        (Some("BPE"), Some(PreTokenizerWrapper::ByteLevel(split))) => {
            let model: BPE = serde_json::from_str(parts.model.get())?;
            let pieces = by_id(serde_json::from_str(parts.model.get())?)?;
            // RoBERTa's file says no space before the first token of a text; each of ours stands in a sentence.
            let split = ByteLevel::new(true, split.trim_offsets, split.use_regex).into();
            (Tokenizer::new(model), Kind::ByteLevel, pieces, split)
        }
        (name, _) => {
            let name = name.unwrap_or("unknown");
            return Err(Problem::Unsupported(format!("a tokenizer of the kind `{name}`")));
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

/// A unigram model that cannot find added pieces in a text.
///
/// Hugging Face lists `<mask>` among the pieces with the best score of all, and relies on cutting it out beforehand.
/// Here such a piece gets a space before it: no token reaches the model with a space in it, so nothing matches, while
/// ids and the other scores stay.
fn unigram(
    model: UnigramParts,
    added: &[(String, u32)],
) -> Result<(Tokenizer, Vec<String>), Problem> {
    let UnigramParts { mut vocab, unk_id, byte_fallback } = model;
    if unk_id.is_none() {
        return Err(Problem::Unsupported("a unigram model without `unk_id`".to_owned()));
    }
    let pieces: Vec<String> = vocab.iter().map(|(piece, _)| piece.clone()).collect();
    for (id, (piece, _)) in vocab.iter_mut().enumerate() {
        let is_added =
            added.iter().any(|(content, added)| *added as usize == id && content == piece);
        if is_added || Specials::TEXTS.contains(&piece.as_str()) {
            piece.insert(0, ' ');
        }
    }
    Ok((Tokenizer::new(Unigram::from(vocab, unk_id, byte_fallback)?), pieces))
}

/// The pieces in the order of their ids, which must be 0, 1, 2 …
fn by_id(BpeVocabulary { vocab }: BpeVocabulary) -> Result<Vec<String>, Problem> {
    let mut pieces: Vec<_> = vocab.into_iter().map(|(piece, id)| (id, piece)).collect();
    pieces.sort_unstable();
    let gapless = pieces.iter().enumerate().all(|(place, (id, _))| place == *id as usize);
    if !gapless {
        return Err(Problem::Unsupported("a vocabulary with gaps".to_owned()));
    }
    Ok(pieces.into_iter().map(|(_, piece)| piece).collect())
}
