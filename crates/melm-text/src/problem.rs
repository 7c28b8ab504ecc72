//! Problems of a file: collected while reading, and reported together.

use std::ops::Range;

use thiserror::Error;

use crate::conll::Separator;
use crate::scheme::Scheme;
use crate::spans::SpanFault;
use crate::tag::TagFault;
use crate::token::TokenFault;
use crate::tokenizer::UnspacedScript;

/// One problem at one place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// The line in the file, from 1.
    pub line: usize,
    /// The character in the line, from 1. It is set by [`crate::Error::data`].
    pub column: usize,
    /// The part of the line that is wrong, as a range of bytes.
    pub span: Range<usize>,
    /// What is wrong.
    pub fault: Fault,
}

/// A kind of problem. The message says what is wrong; [`Self::cure`] says what to do.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum Fault {
    /// A byte is not UTF-8.
    #[error("byte 0x{byte:02X} is not UTF-8")]
    NotUtf8 {
        /// The first wrong byte.
        byte: u8,
    },
    /// The file starts with a byte order mark of UTF-16 or UTF-32.
    #[error("the file is UTF-16 or UTF-32, not UTF-8")]
    WideEncoding,
    /// The file is binary, and no registered format.
    #[error("the file is not a text file, and its format is not known")]
    Binary,
    /// A carriage return is not followed by a line feed.
    #[error("carriage return without a line feed")]
    CarriageReturn,
    /// A row has another number of columns than the rest of the file.
    #[error("expected {expected} columns, found {found}")]
    ColumnCount {
        /// The number of columns of this row.
        found: usize,
        /// The number of columns of the other rows.
        expected: usize,
        /// The separator of the columns of the file.
        separator: Separator,
    },
    /// The tag column does not contain a tag.
    #[error(transparent)]
    Tag(#[from] TagFault),
    /// The token column does not contain a token.
    #[error(transparent)]
    Token(#[from] TokenFault),
    /// The scheme does not allow a tag after the previous tag.
    #[error("{found} cannot follow {before} in {scheme}")]
    TagSequence {
        /// The tag that is not allowed, or `the end of the sentence`.
        found: String,
        /// The previous tag, or `the start of a sentence`.
        before: String,
        /// The scheme of the file.
        scheme: Scheme,
    },
    /// The file has both `E`/`S` and `L`/`U`.
    #[error("the tags mix letters of IOBES (E, S) and of BILOU (L, U)")]
    MixedLetters,
    /// A line is not JSON, or not an object.
    #[error("not a JSON object: {0}")]
    NotJson(String),
    /// The key of the tokens or of the tags is missing.
    #[error("the object has no key `{0}`")]
    NoKey(String),
    /// The key of the tokens or of the tags occurs twice.
    #[error("the key `{0}` occurs twice")]
    DuplicateKey(String),
    /// The value of a key has the wrong type.
    #[error("`{key}` is not a list of {expected}")]
    WrongType {
        /// The key.
        key: String,
        /// The expected type of the list elements.
        expected: &'static str,
    },
    /// The value of a key is not a string.
    #[error("`{0}` is not a string")]
    NotAString(String),
    /// An object of a text without tags has neither tokens nor a text.
    #[error("the object has no key `{tokens}` and no key `{text}`")]
    NoTextKey {
        /// The key of the tokens.
        tokens: String,
        /// The key of the text.
        text: String,
    },
    /// A text is in a script without spaces between words.
    #[error("the text is in {script} script, which does not separate words by spaces")]
    UnspacedScript {
        /// The script.
        script: UnspacedScript,
    },
    /// A line of unlabelled text is too long.
    #[error("the line is longer than 1 MiB")]
    LongLine,
    /// A file with unlabelled text has no sentences.
    #[error("the file contains no text")]
    NoText,
    /// The list of tokens is empty.
    #[error("the sentence has no tokens")]
    NoTokens,
    /// The numbers of tokens and tags differ.
    #[error("{n_tokens} token{} but {n_tags} tag{}", s(*n_tokens), s(*n_tags))]
    TagCount {
        /// The number of tokens.
        n_tokens: usize,
        /// The number of tags.
        n_tags: usize,
    },
    /// A tag id has no name.
    #[error("tag id {id} has no name: {n_names} names are known")]
    UnknownTagId {
        /// The tag id.
        id: i64,
        /// The number of names.
        n_names: usize,
    },
    /// A column given in the options does not exist.
    #[error("column {column} does not exist: the rows have {n_columns} column{}", s(*n_columns))]
    NoSuchColumn {
        /// The column, from 1.
        column: usize,
        /// The number of columns.
        n_columns: usize,
    },
    /// Token and tag are in the same column.
    #[error("column {column} cannot be both the token and the tag")]
    SameColumn {
        /// The column, from 1.
        column: usize,
    },
    /// The file is a JSON array.
    #[error("the file is a JSON array, not JSON lines")]
    JsonArray,
    /// The file has no sentences.
    #[error("the file contains no sentences")]
    NoSentences,
    /// A file with spans has no text.
    #[error("the file contains no labelled text")]
    NoDocuments,
    /// A span cannot be used.
    #[error(transparent)]
    Span(#[from] SpanFault),
    /// A record or a file does not have the form that its format needs.
    #[error("{message}")]
    Record {
        /// What is wrong.
        message: String,
        /// Advice for the user.
        cure: &'static str,
    },
    /// The file has no word vectors.
    #[error("the file contains no word vectors")]
    NoVectors,
    /// A vector does not have the dimension of the file.
    #[error("expected {expected} numbers, found {found}")]
    VectorLength {
        /// The count of numbers on this line.
        found: usize,
        /// The dimension of the file.
        expected: usize,
    },
    /// A component of a vector is not a finite number.
    #[error("not a finite number")]
    VectorNumber,
}

impl Fault {
    /// Returns advice for the user.
    pub fn cure(&self) -> &'static str {
        match self {
            Fault::NotUtf8 { .. } => {
                "convert the file to UTF-8, or pass `--encoding latin1` if it is Latin-1 \
                 (the original CoNLL-2002/2003 files are)"
            }
            Fault::WideEncoding => {
                "save the file as UTF-8, for example with `iconv -f UTF-16 -t UTF-8`"
            }
            Fault::Binary => {
                "pass a file in one of the formats that `melm convert --help` lists, not compressed"
            }
            Fault::CarriageReturn => {
                "end lines with a line feed, for example with `tr '\\r' '\\n'`"
            }
            Fault::ColumnCount { found: 1, separator: Separator::Tab, .. } => {
                "tabs separate the columns of this file; write a tab between the token and its tag, and \
                 an empty line between sentences"
            }
            Fault::ColumnCount { separator: Separator::Tab, .. } => {
                "tabs separate the columns of this file; every row needs the same columns"
            }
            Fault::ColumnCount { found: 1, .. } => {
                "every row needs a token and a tag; separate sentences by an empty line"
            }
            Fault::ColumnCount { .. } => {
                "every row needs the same columns; if tokens contain spaces, separate the columns \
                 by tabs"
            }
            Fault::Tag(TagFault::NotATag(_)) => {
                "write tags as `B-TYPE` and `I-TYPE`; if the tags are in another column, pass its \
                 number with `--tag-column`"
            }
            Fault::Tag(TagFault::BadType(_) | TagFault::LongType { .. }) => {
                "rename the entity type"
            }
            Fault::MixedLetters => "use the letters of one scheme, or run `melm convert --repair`",
            Fault::Tag(TagFault::NoType(_)) => "add the entity type, as in `B-PER`",
            Fault::Token(TokenFault::Empty) => "add the token, or remove its tag too",
            Fault::Token(TokenFault::DocumentStart) => {
                "remove it, or make it a sentence of its own"
            }
            Fault::Token(TokenFault::Break) => "split the token, or replace the character",
            Fault::TagSequence { .. } => {
                "correct the tag, run `melm convert --repair`, or pass the right scheme with \
                 `--scheme`"
            }
            Fault::NotJson(_) => {
                "write one whole JSON object on each line, for example with `jq -c .`"
            }
            Fault::NoKey(_) => "pass the keys with `--tokens-key` and `--tags-key`",
            Fault::DuplicateKey(_) => "remove one of them",
            Fault::WrongType { .. } => {
                "write tokens as a list of strings, and tags as a list of strings or of ids"
            }
            Fault::NotAString(_) => "write the text as one JSON string",
            Fault::NoTextKey { .. } => {
                "write the tokens as a list under `tokens`, or the text as a string under `text`"
            }
            Fault::UnspacedScript { .. } => {
                "give text that is already split into tokens: CoNLL, or JSON lines with `tokens`"
            }
            Fault::LongLine => "write one sentence, paragraph or JSON object on each line",
            Fault::NoText => {
                "pass plain text with one sentence or paragraph on each line, CoNLL or JSON lines"
            }
            Fault::NoTokens => "remove the line",
            Fault::TagCount { .. } => "give each token one tag",
            Fault::UnknownTagId { id: -100, .. } => {
                "-100 marks pieces that a trainer skips: export the data before tokenizing it"
            }
            Fault::UnknownTagId { .. } => {
                "pass the names in order with `--names O,B-PER,I-PER,…` or `--names FILE`"
            }
            Fault::SameColumn { .. } => {
                "pass two different columns with `--token-column` and `--tag-column`"
            }
            Fault::NoSuchColumn { .. } => {
                "columns count from 1; `melm check` shows the columns of a file"
            }
            Fault::NoDocuments => "the file needs at least one text that somebody has annotated",
            Fault::Span(fault) => fault.cure(),
            Fault::Record { cure, .. } => cure,
            Fault::NoVectors => {
                "pass a text file of MUSE or fastText (`.vec`, plain or gzip), with a word and its \
                 numbers on each line"
            }
            Fault::VectorLength { .. } | Fault::VectorNumber => {
                "the file may be truncated or damaged: download it again"
            }
            Fault::JsonArray => "write one object on each line, for example with `jq -c '.[]'`",
            Fault::NoSentences => {
                "a CoNLL file has a token and its tag on each line, and an empty line after each \
                 sentence"
            }
        }
    }
}

/// A fault, and the part of its line that is wrong, as a range of bytes.
pub(crate) struct LocatedFault {
    pub(crate) span: Range<usize>,
    pub(crate) fault: Fault,
}

/// The plural ending.
fn s(n: usize) -> &'static str {
    if n == 1 { "" } else { "s" }
}

/// The number of problems that are stored. Further problems are only counted.
const MAX_KEPT: usize = 200;

/// The problems of one file. The first 200 are stored; all are counted.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Problems {
    first: Vec<Problem>,
    n: usize,
}

impl Problems {
    /// Adds a problem of one line. `span` is the part of the line that is wrong.
    pub fn push(&mut self, line: usize, span: Range<usize>, fault: impl Into<Fault>) {
        self.n += 1;
        if self.first.len() < MAX_KEPT {
            self.first.push(Problem { line, column: 1, span, fault: fault.into() });
        }
    }

    /// The number of all problems, including those that are only counted.
    pub fn len(&self) -> usize {
        self.n
    }

    /// Returns true if there are no problems.
    pub fn is_empty(&self) -> bool {
        self.n == 0
    }

    /// Adds all problems of `others`.
    pub(crate) fn append(&mut self, others: &Problems) {
        self.n += others.n;
        let room = MAX_KEPT.saturating_sub(self.first.len());
        self.first.extend(others.first.iter().take(room).cloned());
    }

    /// Sorts the stored problems by line.
    pub(crate) fn sort(&mut self) {
        self.first.sort_by_key(|p| (p.line, p.span.start));
    }

    pub(crate) fn first_mut(&mut self) -> &mut [Problem] {
        &mut self.first
    }

    /// The stored problems.
    pub fn first(&self) -> &[Problem] {
        &self.first
    }
}
