//! What a labelled sentence is: tokens, tags, mentions, file formats, scores.
//!
//! Text in, text out: no tensors, no randomness, nothing taken from the environment. The way
//! through the crate is the way of the data:
//!
//! 1. [`Source`]: a file as text, its encoding checked.
//! 2. [`Reader`]: sentences as they stand in the file ([`Record`]), whatever its [`Format`];
//!    every problem is collected with its line ([`Problems`]).
//! 3. [`Survey`]: a whole file read once: counts, its [`Scheme`], its problems.
//! 4. [`Corpus`]: the sentences, owned, valid in their scheme.
//! 5. [`mentions`] and [`write_tags`]: tags to spans and back.
//! 6. [`Scores`]: precision, recall and F1 as conlleval and seqeval count them.
//!
//! Beside it: [`WordVectors`], read from the files of others.

pub mod check;
pub mod conll;
mod corpus;
mod error;
mod extend;
mod format;
mod hash;
pub mod jsonl;
mod language;
mod mention;
mod problem;
mod record;
mod scheme;
pub mod score;
mod sentence;
mod source;
mod survey;
mod tag;
mod token;
mod untagged;
mod vectors;

pub use corpus::Corpus;
pub use error::Error;
pub use extend::{alike, extended};
pub use format::{Format, ReadOptions, Reader, Writer};
pub use language::{Language, LanguagePart, is_language_code};
pub use mention::{Mention, mentions, merged_by_io, repair, write_tags};
pub use problem::{Fault, Problem, Problems};
pub use record::{Record, Row};
pub use scheme::{Detected, Scheme, Transitions, UnknownScheme};
pub use score::Scores;
pub use sentence::{Frame, Sentence, SentenceFault};
pub use source::{Encoding, Source};
pub use survey::Survey;
pub use tag::{EndLetters, EntityType, EntityTypes, Part, Spelled, Tag, TagFault, is_tag};
pub use token::{DOCUMENT_START, Token, TokenFault};
pub use untagged::with_tags;
pub use vectors::WordVectors;
