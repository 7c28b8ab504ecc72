//! Labelled text for named-entity recognition: tokens, tags, mentions, file formats and scores.
//!
//! The crate reads CoNLL files and JSON lines without losing a column, a key or a comment, detects
//! the tag scheme, reports every problem with its line, and scores as conlleval and seqeval do. It
//! contains no models, uses no random numbers and reads only the files that it is given.
//!
//! ```
//! use melm_text::{Corpus, ReadOptions, Scheme, Source, score};
//!
//! // `Corpus::open("train.conll")` reads a file; here the text is in memory.
//! let source = Source::from_text("gold.conll", "Angela B-PER\nMerkel I-PER\nspoke O\n");
//! let gold = Corpus::read(&source, &ReadOptions::default())?;
//!
//! for sentence in gold.sentences() {
//!     for mention in sentence.mentions() {
//!         let name = gold.types().name(mention.entity_type);
//!         assert_eq!((name, mention.tokens), ("PER", 0..2));
//!     }
//! }
//!
//! let iobes = gold.with_scheme(Scheme::Iobes);
//! let mut text = Vec::new();
//! iobes.write_conll(&mut text).expect("writing to memory does not fail");
//! assert_eq!(text, b"Angela B-PER\nMerkel E-PER\nspoke O\n\n");
//!
//! let scores = score(&gold, &iobes)?;
//! assert_eq!(scores.micro().f1(), 1.0);
//! # Ok::<(), melm_text::Error>(())
//! ```
//!
//! # How data flows
//!
//! 1. [`Source`] is the text of a file, with its encoding checked.
//! 2. [`Structure`] says how the file stores sentences: its [`Format`], its columns or keys. It is
//!    detected once, except for what [`ReadOptions`] set.
//! 3. [`Reader`] reads one sentence at a time into a [`Record`] that borrows from the source. It
//!    collects everything that is wrong in [`Problems`].
//! 4. [`Survey`] is one pass over a whole file: counts, [`Scheme`], problems.
//! 5. [`Corpus`] owns the sentences of a file without problems. It is cheap to clone.
//!    [`LabelledFile`] stores the text too, to write more sentences in the same format.
//! 6. [`Sentence::mentions`] turns tags into spans, [`write_tags`] turns spans into tags, and
//!    [`repair`] makes any tags valid in a scheme.
//! 7. [`score()`] compares two corpora; the result is [`Scores`].
//!
//! [`UnlabelledText`] is text without tags. [`Tokenizer`] splits plain text into tokens and sentences and loses nothing.
//!
//! [`check`] reports what is in a file and what looks wrong in it. [`Converter`] writes a file in another format or
//! scheme, and [`copy_sentences`] copies some sentences of a file. [`WordVectors`] reads word
//! vectors of MUSE and fastText.

mod bounded;
pub mod check;
pub mod conll;
mod convert;
mod convert_documents;
mod corpus;
mod error;
mod extend;
mod format;
pub mod formats;
pub mod jsonl;
mod labelled_file;
mod language;
mod limits;
mod mention;
mod notes;
#[cfg(feature = "parquet")]
pub mod parquet_file;
mod problem;
mod record;
mod scheme;
pub mod score;
mod select;
mod sentence;
mod source;
pub mod spacy;
pub mod spans;
mod survey;
mod tag;
mod token;
mod tokenizer;
mod unlabelled;
mod untagged;
mod vectors;

pub use convert::{Conversion, ConversionReport, Converter};
pub use convert_documents::{
    ConvertedDocuments, Loss, convert_documents, find_losses, read_documents,
};
pub use corpus::Corpus;
pub use error::Error;
pub use extend::LanguageText;
pub use format::{ReadOptions, Reader, Structure, Writer};
pub use formats::{AnnotationChoice, FileFormat, Format, Part, WriteSettings, WrittenFile};
pub use labelled_file::LabelledFile;
pub use language::{Language, LanguagePart, is_language_code};
pub use limits::Limits;
pub use mention::{Mention, count_merged_by_io, mentions, repair, write_tags};
pub use notes::{count, count_of, describe_losses, escaped, shown};
pub use problem::{Fault, Problem, Problems};
pub use record::{Record, Row};
pub use scheme::{DetectedScheme, Scheme, UnknownScheme};
pub use score::{Scores, score};
pub use select::{CopiedSentences, copy_sentences};
pub use sentence::{Sentence, SentenceFault, Splice};
pub use source::{Encoding, Source};
pub use spans::{
    Document, Documents, DocumentsBuilder, Metadata, OffsetFault, OffsetMap, OffsetUnit,
    OverlapRule, Place, RawDocument, RawSpan, Span, SpanCounts, SpanFault,
};
pub use survey::Survey;
pub use tag::{EndLetters, EntityType, EntityTypes, SpelledTag, Tag, TagFault, TagPrefix};
pub use token::{Token, TokenFault};
pub use tokenizer::{
    ChoiceEvidence, TokenizedText, Tokenizer, TokenizerChoice, TokenizerRules, UnspacedScript,
    UnspacedText,
};
pub use unlabelled::{
    KnownSentences, LeftOut, SentenceRole, TextFile, TextFormat, TextOptions, UnlabelledSentence,
    UnlabelledText,
};
pub use untagged::add_missing_tags;
pub use vectors::WordVectors;
