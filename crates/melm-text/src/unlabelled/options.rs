//! How unlabelled text is read, and how a file was read.

use std::fmt;
use std::str::FromStr;

use crate::limits::Limits;
use crate::source::Encoding;
use crate::tokenizer::Tokenizer;

/// The format of a file with unlabelled text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TextFormat {
    /// Plain text: one sentence or paragraph on each line.
    Plain,
    /// CoNLL rows: one token on each line, an empty line after each sentence. Other columns are ignored.
    Conll,
    /// JSON lines: an object with a list of tokens or with a text on each line. Other keys are ignored.
    Jsonl,
    /// A labelled file with spans, such as a Label Studio export. The spans are ignored. Only detected.
    Spans,
}

impl TextFormat {
    /// The name that command-line options and reports use.
    pub fn name(self) -> &'static str {
        match self {
            Self::Plain => "text",
            Self::Conll => "conll",
            Self::Jsonl => "jsonl",
            Self::Spans => "spans",
        }
    }
}

impl fmt::Display for TextFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for TextFormat {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        match name {
            "text" => Ok(Self::Plain),
            "conll" => Ok(Self::Conll),
            "jsonl" => Ok(Self::Jsonl),
            _ => Err("expected text, conll or jsonl".into()),
        }
    }
}

/// Settings for reading unlabelled text. Each setting that is `None` is detected from the file.
#[derive(Debug, Clone)]
pub struct TextOptions {
    /// The format.
    pub format: Option<TextFormat>,
    /// The encoding.
    pub encoding: Encoding,
    /// CoNLL: the column of the token, from 1.
    pub token_column: Option<usize>,
    /// JSON lines: the key of the tokens. An object without it must have a text.
    pub tokens_key: Option<String>,
    /// JSON lines: the key of the text. If it is `None`, the key is `text`.
    pub text_key: Option<String>,
    /// Splits plain text and JSON strings into tokens and sentences.
    pub tokenizer: Tokenizer,
    /// The largest text, in bytes after decompression.
    pub max_bytes: u64,
    /// The largest number of tokens. It bounds the memory: a token takes about 80 bytes.
    pub max_tokens: usize,
}

impl TextOptions {
    /// The default of [`Self::max_bytes`]: 256 MiB, about 2 million sentences.
    pub const MAX_BYTES: u64 = 256 << 20;
    /// The default of [`Self::max_tokens`]: 10 million, about 500,000 sentences.
    pub const MAX_TOKENS: usize = 10_000_000;

    /// Settings that detect everything and split text with `tokenizer`.
    pub fn with_tokenizer(tokenizer: Tokenizer) -> Self {
        Self {
            format: None,
            encoding: Encoding::default(),
            token_column: None,
            tokens_key: None,
            text_key: None,
            tokenizer,
            max_bytes: Self::MAX_BYTES,
            max_tokens: Self::MAX_TOKENS,
        }
    }
}

impl TextOptions {
    /// Sets [`Self::max_bytes`] and [`Self::max_tokens`] to the usual limits times the factor of `limits`.
    #[must_use]
    pub fn within(self, limits: Limits) -> Self {
        let max_bytes = limits.scale(Self::MAX_BYTES);
        Self { max_bytes, max_tokens: limits.scale_size(Self::MAX_TOKENS), ..self }
    }
}

impl Default for TextOptions {
    fn default() -> Self {
        Self::with_tokenizer(Tokenizer::default())
    }
}

/// How a file with unlabelled text was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TextFile {
    /// The name of the file.
    pub name: String,
    /// The format: given, or detected.
    pub format: TextFormat,
    /// The rules of the tokenizer in words, if it split the text. `None` if the file has tokens only.
    pub tokenizer: Option<String>,
    /// True if the file was compressed with gzip.
    pub is_gzip: bool,
    /// The number of sentences that were read.
    pub n_sentences: usize,
    /// The number of lines that were left out because they contain a script without spaces between words.
    pub n_unspaced: usize,
}
