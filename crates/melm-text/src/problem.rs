//! What is wrong with a file: collected while reading, reported once.

use std::ops::Range;

use thiserror::Error;

use crate::scheme::Scheme;
use crate::tag::TagFault;
use crate::token::TokenFault;

/// One thing wrong at one place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// Line in the file, from 1.
    pub line: usize,
    /// Character in the line, from 1; known once the problem is reported with its excerpt.
    pub column: usize,
    /// The bytes of that line that are at fault.
    pub span: Range<usize>,
    /// What is wrong there.
    pub fault: Fault,
}

/// What can be wrong with a place in a file.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum Fault {
    /// A byte that is not UTF-8.
    #[error("byte 0x{byte:02X} is not UTF-8")]
    NotUtf8 {
        /// The first byte at fault.
        byte: u8,
    },
    /// A UTF-16 or UTF-32 byte order mark.
    #[error("the file is UTF-16 or UTF-32, not UTF-8")]
    WideEncoding,
    /// A NUL byte: not a text file.
    #[error("the file holds a NUL byte: it is not a text file")]
    Binary,
    /// A carriage return without its line feed.
    #[error("a carriage return inside the line")]
    Return,
    /// Another number of columns than the rest of the file.
    #[error("{found} column{} where {expected} are expected", s(*found))]
    Ragged {
        /// Columns of this row.
        found: usize,
        /// Columns of the file.
        expected: usize,
    },
    /// The tag column holds no tag.
    #[error(transparent)]
    Tag(#[from] TagFault),
    /// The token column holds no token.
    #[error(transparent)]
    Token(#[from] TokenFault),
    /// A tag that the scheme does not allow there.
    #[error("{found} may not follow {before} in {scheme}")]
    Sequence {
        /// The tag, or `the end of the sentence`.
        found: String,
        /// What stood before it.
        before: String,
        /// The scheme of the file.
        scheme: Scheme,
    },
    /// `E`/`S` and `L`/`U` in one file.
    #[error("the end letters of IOBES (E, S) and of BILOU (L, U) are mixed")]
    MixedLetters,
    /// The line is not JSON, or not an object.
    #[error("not a JSON object: {0}")]
    Json(String),
    /// A key that every line must have is missing.
    #[error("no key `{0}`")]
    NoKey(String),
    /// A key that every line must have stands there twice.
    #[error("the key `{0}` stands twice")]
    KeyTwice(String),
    /// A key holds something else than it should.
    #[error("`{key}` is not a list of {expected}")]
    Value {
        /// The key.
        key: String,
        /// What it should be a list of.
        expected: &'static str,
    },
    /// A JSON object without any token.
    #[error("the sentence has no tokens")]
    NoToken,
    /// Not one tag for each token.
    #[error("{n_tokens} token{} but {n_tags} tag{}", s(*n_tokens), s(*n_tags))]
    Uneven {
        /// Tokens of the sentence.
        n_tokens: usize,
        /// Tags of the sentence.
        n_tags: usize,
    },
    /// A tag id without a name.
    #[error("tag id {id} has no name: {n_names} names are known")]
    TagId {
        /// The id found.
        id: i64,
        /// How many names there are.
        n_names: usize,
    },
    /// A column that was asked for does not exist.
    #[error("there is no column {column}: the rows have {n_columns}")]
    Column {
        /// The column asked for, from 1.
        column: usize,
        /// How many there are.
        n_columns: usize,
    },
    /// Token and tag in one column.
    #[error("column {column} cannot hold both the token and the tag")]
    SameColumn {
        /// The column, from 1.
        column: usize,
    },
    /// A JSON array where JSON lines are expected.
    #[error("the file is one JSON array, not JSON lines")]
    JsonArray,
    /// No sentence in the whole file.
    #[error("the file holds no sentence")]
    NoSentence,
    /// A file of vectors that holds none.
    #[error("the file holds no vectors")]
    NoVectors,
    /// A vector of another dimension than the file's.
    #[error("{found} number{} where {expected} are expected", s(*found))]
    VectorLength {
        /// Numbers on this line.
        found: usize,
        /// The dimension.
        expected: usize,
    },
    /// What stands in a vector is no number, or not a finite one.
    #[error("not a finite number")]
    VectorNumber,
}

impl Fault {
    /// What the user can do about it, where we know.
    pub fn cure(&self) -> Option<String> {
        Some(match self {
            Fault::NotUtf8 { .. } => {
                "convert the file to UTF-8, or pass `--encoding latin1` if it is Latin-1 \
                 (the original CoNLL-2002/2003 files are)"
                    .into()
            }
            Fault::WideEncoding => {
                "save the file as UTF-8, for example with `iconv -f UTF-16 -t UTF-8`".into()
            }
            Fault::Binary => "give a CoNLL or JSON lines file".into(),
            Fault::Return => "end lines with a line feed, for example with `tr '\\r' '\\n'`".into(),
            Fault::Ragged { found: 1, .. } => {
                "every row needs its token and its tag; sentences are separated by an empty line"
                    .into()
            }
            Fault::Ragged { .. } => {
                "every row needs the same columns; a token that holds a space needs tabs between \
                 the columns"
                    .into()
            }
            Fault::Tag(TagFault::NotATag(_)) => {
                "write tags as `B-TYPE` and `I-TYPE`; if the tags are in another column, name it \
                 with `--tag-column`"
                    .into()
            }
            Fault::Tag(TagFault::BadType(_)) => "rename the entity type".into(),
            Fault::MixedLetters => {
                "spell all tags alike, or have it done by `melm convert --repair`".into()
            }
            Fault::Tag(TagFault::NoType(_)) => "add the entity type, as in `B-PER`".into(),
            Fault::Token(TokenFault::Empty) => {
                "give it a token, or leave it out with its tag".into()
            }
            Fault::Token(TokenFault::DocumentStart) => {
                "leave the line out, or give it a sentence of its own".into()
            }
            Fault::Token(TokenFault::Break) => "split the token, or replace the break".into(),
            Fault::Sequence { .. } => {
                "correct the tag, have it done by `melm convert --repair`, or name the scheme \
                 with `--scheme`"
                    .into()
            }
            Fault::Json(_) => {
                "JSON lines hold one whole object on each line, for example by `jq -c .`".into()
            }
            Fault::NoKey(_) => "name the keys with `--tokens-key` and `--tags-key`".into(),
            Fault::KeyTwice(_) => "give each key once".into(),
            Fault::Value { .. } => {
                "tokens are a list of strings, tags a list of strings or of ids".into()
            }
            Fault::NoToken => "leave the line out".into(),
            Fault::Uneven { .. } => "give each token one tag".into(),
            Fault::TagId { id: -100, .. } => {
                "-100 marks pieces that a trainer skips: export the data before it is tokenized"
                    .into()
            }
            Fault::TagId { .. } => {
                "give the names in order with `--names O,B-PER,I-PER,…` or `--names FILE`".into()
            }
            Fault::SameColumn { .. } => {
                "name two different columns with `--token-column` and `--tag-column`".into()
            }
            Fault::Column { .. } => {
                "columns count from 1; `melm check` shows what is in the file".into()
            }
            Fault::NoVectors => {
                "vectors are text, as MUSE and fastText write them (`.vec`, plain or gzip): a word and \
                 its numbers on each line"
                    .into()
            }
            Fault::VectorLength { .. } | Fault::VectorNumber => {
                "the file may be cut short or damaged: fetch it again".into()
            }
            Fault::JsonArray => "write one object a line, for example with `jq -c '.[]'`".into(),
            Fault::NoSentence => {
                "a CoNLL file has one token and its tag on each line, an empty line after each \
                 sentence"
                    .into()
            }
        })
    }
}

/// The plural ending.
fn s(n: usize) -> &'static str {
    if n == 1 { "" } else { "s" }
}

/// How many problems are kept with their place; the others are counted.
const KEPT: usize = 200;

/// All problems of one file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Problems {
    first: Vec<Problem>,
    n: usize,
}

impl Problems {
    /// Adds one.
    pub fn push(&mut self, line: usize, span: Range<usize>, fault: impl Into<Fault>) {
        self.n += 1;
        if self.first.len() < KEPT {
            self.first.push(Problem { line, column: 1, span, fault: fault.into() });
        }
    }

    /// How many there are, kept or not.
    pub fn len(&self) -> usize {
        self.n
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.n == 0
    }

    /// Adds all of `others`.
    pub(crate) fn append(&mut self, others: &Problems) {
        self.n += others.n;
        let room = KEPT.saturating_sub(self.first.len());
        self.first.extend(others.first.iter().take(room).cloned());
    }

    /// Puts the kept ones in the order of their lines.
    pub(crate) fn sort(&mut self) {
        self.first.sort_by_key(|p| (p.line, p.span.start));
    }

    pub(crate) fn first_mut(&mut self) -> &mut [Problem] {
        &mut self.first
    }

    /// The first of them, with their places.
    pub fn first(&self) -> &[Problem] {
        &self.first
    }
}
