//! The parser of `tokenizer.json`.

use std::collections::BTreeMap;
use std::path::Path;

use serde::Deserialize;
use serde_json::value::RawValue;
use tokenizers::models::bpe::BPE;
use tokenizers::models::unigram::Unigram;
use tokenizers::models::wordpiece::WordPiece;
use tokenizers::pre_tokenizers::byte_level::ByteLevel;
use tokenizers::{ModelWrapper, NormalizerWrapper, PreTokenizerWrapper};

use super::bounds;
use super::specials::SpecialPieces;
use crate::Error;

/// The supported kinds of tokenizer. The alignment of pieces with tokens is tested for these kinds only.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum TokenizerKind {
    /// Unigram pieces, as XLM-R and `CamemBERT` have. `▁` begins a word.
    Unigram,
    /// Byte-level BPE pieces, as `RoBERTa` and `ModernBERT` have. `Ġ` begins a word.
    ByteLevel,
    /// BPE pieces in which `▁` begins a word, as Gemma and `mmBERT` have. A character without a piece becomes one
    /// piece for each of its bytes, such as `<0xE2>`.
    ByteFallback,
    /// `WordPiece` pieces, as BERT has. The prefix, `##`, marks the pieces that continue a word.
    WordPiece { prefix: String },
}

/// A parsed `tokenizer.json`. The added pieces are not passed to `model`.
pub(super) struct Rules {
    pub(super) kind: TokenizerKind,
    /// The normalizers, in the order in which they run.
    pub(super) normalizers: Vec<NormalizerWrapper>,
    /// The rules that split normalised text into words, in the order in which they run.
    pub(super) splitters: Vec<PreTokenizerWrapper>,
    pub(super) model: ModelWrapper,
    /// The pieces of the model, by id.
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
    #[serde(default)]
    byte_fallback: bool,
}

#[derive(Deserialize)]
struct UnigramJson {
    vocab: Vec<(String, f64)>,
    unk_id: Option<usize>,
    #[serde(default)]
    byte_fallback: bool,
}

#[derive(Deserialize)]
struct VocabularyJson {
    vocab: BTreeMap<String, u32>,
}

/// Parses the text of a `tokenizer.json`.
pub(super) fn parse(text: &str) -> Result<Rules, ParseError> {
    let parts: TokenizerJson = serde_json::from_str(text)?;
    let header: ModelHeaderJson = serde_json::from_str(parts.model.get())?;
    if header.dropout.is_some_and(|rate| rate != 0.0) {
        return Err(ParseError::Unsupported("random dropout of merges".to_owned()));
    }
    let added: Vec<_> =
        parts.added_tokens.into_iter().map(|added| (added.content, added.id)).collect();
    bounds::check_tables(&optional(parts.normalizer.as_deref())?.unwrap_or_default())?;
    let normalizer = optional(parts.normalizer.as_deref())?;
    let normalizers = normalizer.map_or_else(Vec::new, flatten_normalizer);
    let splitter: Option<PreTokenizerWrapper> = optional(parts.pre_tokenizer.as_deref())?;
    let splitter = splitter.map_or_else(Vec::new, flatten_splitter);
    let model = parts.model.get();
    let (kind, model, pieces, splitters) = match (header.name.as_deref(), &splitter[..]) {
        (Some("Unigram"), [_, ..]) => {
            let (model, pieces) = unigram(serde_json::from_str(model)?, &added)?;
            (TokenizerKind::Unigram, model, pieces, splitter)
        }
        (Some("BPE"), [PreTokenizerWrapper::ByteLevel(split)]) => {
            // RoBERTa's file adds no space before the first token of a text. Here every token is inside a sentence,
            // so every token gets a space.
            let split = ByteLevel::new(true, split.trim_offsets, split.use_regex).into();
            let (model, pieces) = bpe(model)?;
            (TokenizerKind::ByteLevel, model, pieces, vec![split])
        }
        (Some("BPE"), _) if header.byte_fallback => {
            let (model, pieces) = bpe(model)?;
            (TokenizerKind::ByteFallback, model, pieces, splitter)
        }
        (Some("WordPiece"), [_, ..]) => {
            let (kind, model, pieces) = word_piece(model)?;
            (kind, model, pieces, splitter)
        }
        (name, _) => {
            let name = name.unwrap_or("unknown");
            return Err(ParseError::Unsupported(format!("a tokenizer of the kind `{name}`")));
        }
    };
    bounds::check_rules(&normalizers, &splitters)?;
    Ok(Rules { kind, normalizers, splitters, model, pieces, added })
}

fn optional<T: serde::de::DeserializeOwned>(
    part: Option<&RawValue>,
) -> Result<Option<T>, serde_json::Error> {
    part.map_or(Ok(None), |part| serde_json::from_str(part.get()))
}

/// Returns the normalizers of a sequence in order, or a single normalizer.
fn flatten_normalizer(normalizer: NormalizerWrapper) -> Vec<NormalizerWrapper> {
    match normalizer {
        NormalizerWrapper::Sequence(all) => all.into_iter().flat_map(flatten_normalizer).collect(),
        one => vec![one],
    }
}

/// Returns the splitting rules of a sequence in order, or a single rule.
fn flatten_splitter(splitter: PreTokenizerWrapper) -> Vec<PreTokenizerWrapper> {
    match splitter {
        PreTokenizerWrapper::Sequence(all) => all.into_iter().flat_map(flatten_splitter).collect(),
        one => vec![one],
    }
}

/// Builds a unigram model that cannot find added pieces in a text. Returns the model, and its pieces by id.
///
/// In Hugging Face's files, `<mask>` is a unigram piece with a better score than any other. Hugging Face splits it
/// off before the model runs. Here the text of such pieces gets a space in front. The model never reads a token that
/// contains a space, so these pieces never match. All ids and all other scores stay the same.
fn unigram(
    model: UnigramJson,
    added: &[(String, u32)],
) -> Result<(ModelWrapper, Vec<String>), ParseError> {
    let UnigramJson { mut vocab, unk_id, byte_fallback } = model;
    if unk_id.is_none() {
        return Err(ParseError::Unsupported("a unigram model without `unk_id`".to_owned()));
    }
    let pieces: Vec<String> = vocab.iter().map(|(piece, _)| piece.clone()).collect();
    for (id, (piece, _)) in vocab.iter_mut().enumerate() {
        let is_added =
            added.iter().any(|(content, added)| *added as usize == id && content == piece);
        if is_added || SpecialPieces::is_name(piece) {
            piece.insert(0, ' ');
        }
    }
    Ok((Unigram::from(vocab, unk_id, byte_fallback)?.into(), pieces))
}

fn bpe(model: &str) -> Result<(ModelWrapper, Vec<String>), ParseError> {
    let VocabularyJson { vocab } = serde_json::from_str(model)?;
    let pieces = pieces_by_id(vocab, 0)?;
    Ok((serde_json::from_str::<BPE>(model)?.into(), pieces))
}

fn word_piece(model: &str) -> Result<(TokenizerKind, ModelWrapper, Vec<String>), ParseError> {
    let VocabularyJson { vocab } = serde_json::from_str(model)?;
    let model: WordPiece = serde_json::from_str(model)?;
    let unk = &model.unk_token;
    if !vocab.contains_key(unk) {
        return Err(ParseError::Unsupported(format!(
            "a WordPiece model without the piece `{unk}`"
        )));
    }
    if model.max_input_chars_per_word > bounds::MAX_WORD_CHARACTERS {
        let found = format!("`max_input_chars_per_word` above {}", bounds::MAX_WORD_CHARACTERS);
        return Err(ParseError::Unsupported(found));
    }
    if model.continuing_subword_prefix.is_empty() {
        let found = "a WordPiece model without `continuing_subword_prefix`";
        return Err(ParseError::Unsupported(found.to_owned()));
    }
    // A piece that a `vocab.txt` lists twice has the id of its last line, so that the other id is not used.
    let max_gaps = vocab.len();
    let pieces = pieces_by_id(vocab, max_gaps)?;
    let kind = TokenizerKind::WordPiece { prefix: model.continuing_subword_prefix.clone() };
    Ok((kind, model.into(), pieces))
}

/// Returns the pieces in the order of their ids. At most `max_gaps` ids may have no piece. Their text, which begins with
/// a space, never comes from a corpus.
fn pieces_by_id(vocab: BTreeMap<String, u32>, max_gaps: usize) -> Result<Vec<String>, ParseError> {
    let n_pieces = vocab.len();
    let mut by_id: Vec<_> = vocab.into_iter().map(|(piece, id)| (id as usize, piece)).collect();
    by_id.sort_unstable();
    let n_ids = by_id.last().map_or(0, |(id, _)| id + 1);
    let is_doubled = by_id.windows(2).any(|pair| pair[0].0 == pair[1].0);
    if is_doubled || n_ids > n_pieces + max_gaps {
        return Err(ParseError::Unsupported("a vocabulary with gaps".to_owned()));
    }
    let mut pieces = Vec::with_capacity(n_ids);
    for (id, piece) in by_id {
        while pieces.len() < id {
            pieces.push(format!(" unused {}", pieces.len()));
        }
        pieces.push(piece);
    }
    Ok(pieces)
}
