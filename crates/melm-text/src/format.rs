//! How a file stores its sentences, and one reader for all formats.
//!
//! CoNLL rows and JSON lines are read and written sentence by sentence, with all their columns and keys. All other
//! formats are [`Documents`]: texts with spans. The formats themselves are in [`crate::formats`].

use std::io::{self, Write};
use std::path::Path;
use std::sync::Arc;

use crate::conll::{ConllReader, ConllWriter, Layout, Separator};
use crate::error::Error;
use crate::formats::{AnnotationChoice, Format};
use crate::jsonl::{JsonlKeys, JsonlReader, JsonlWriter, TAGS_KEYS, TagNames, find_names_beside};
use crate::problem::{Fault, Problems};
use crate::record::Record;
use crate::scheme::Scheme;
use crate::source::Source;
use crate::spans::{DocumentReader, Documents, OffsetUnit, OverlapRule};
use crate::tag::{EntityTypes, Tag};

/// Settings for reading a file. Each setting that is `None` is detected from the file.
///
/// ```
/// use melm_text::{Corpus, Format, ReadOptions, Source};
/// let source = Source::from_text("a.conll", "B-LOC Bonn\nO is\n");
/// let options = ReadOptions {
///     format: Some(Format::CONLL),
///     token_column: Some(2),
///     tag_column: Some(1),
///     ..ReadOptions::default()
/// };
/// assert_eq!(Corpus::read(&source, &options)?.sentences()[0].tokens()[0].as_str(), "Bonn");
/// # Ok::<(), melm_text::Error>(())
/// ```
#[derive(Debug, Clone, Default)]
pub struct ReadOptions {
    /// The format.
    pub format: Option<Format>,
    /// The scheme.
    pub scheme: Option<Scheme>,
    /// CoNLL: the column of the token, from 1.
    pub token_column: Option<usize>,
    /// CoNLL: the column of the tag, from 1.
    pub tag_column: Option<usize>,
    /// JSON lines: the key of the tokens.
    pub tokens_key: Option<String>,
    /// JSON lines: the key of the tags.
    pub tags_key: Option<String>,
    /// JSON lines: the tag of each tag id.
    pub names: Option<TagNames>,
    /// Formats with spans: the unit of the offsets.
    pub offset_unit: Option<OffsetUnit>,
    /// Formats with spans: what happens to overlapping spans.
    pub overlaps: OverlapRule,
    /// Label Studio: which annotation of a task is read.
    pub annotations: AnnotationChoice,
    /// Formats with spans: also reads records that nobody has annotated or that were rejected. Without it they are left
    /// out and counted, because their texts may contain mentions that are not marked.
    pub keeps_unlabelled: bool,
}

impl ReadOptions {
    /// Sets [`Self::names`], unless they are given, from a file of tag names beside `path`: see [`find_names_beside`].
    #[must_use]
    pub fn with_names_beside(mut self, path: &Path) -> Self {
        if self.names.is_none() {
            let key = self.tags_key.as_deref().unwrap_or(TAGS_KEYS[0]);
            self.names = find_names_beside(path, key);
        }
        self
    }
}

/// How a file stores its sentences: its format, and the columns or keys of tokens and tags.
///
/// [`Structure::detect`] examines a file once. Every later pass over the file reuses the result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Structure {
    /// CoNLL rows with these columns.
    Conll(Layout),
    /// JSON lines.
    Jsonl {
        /// The keys of tokens and tags.
        keys: JsonlKeys,
        /// The tag of each tag id, if names were given.
        names: Option<TagNames>,
    },
    /// Texts with spans.
    Documents(Arc<Documents>),
}

impl Structure {
    /// Detects the structure of `source`. Settings that `options` contain are not detected but used.
    ///
    /// Fails if a column of `options` does not exist, if token and tag are in the same column, if the file is a single
    /// JSON array without spans, or if a file with spans has problems.
    pub fn detect(source: &Source, options: &ReadOptions) -> Result<Self, Error> {
        options.format.unwrap_or_else(|| Format::detect(source)).read(source, options)
    }

    /// The format.
    pub fn format(&self) -> Format {
        match self {
            Self::Conll(_) => Format::CONLL,
            Self::Jsonl { .. } => Format::JSONL,
            Self::Documents(documents) => documents.format,
        }
    }

    /// The columns, if the file is CoNLL.
    pub fn layout(&self) -> Option<&Layout> {
        match self {
            Self::Conll(layout) => Some(layout),
            Self::Jsonl { .. } | Self::Documents(_) => None,
        }
    }

    /// Returns the documents of this structure, followed by those of another one. Other structures stay as they are.
    pub(crate) fn with_documents(self, more: Self) -> Self {
        match (self, more) {
            (Self::Documents(own), Self::Documents(more)) => {
                let mut all = Arc::unwrap_or_clone(own);
                let more = Arc::unwrap_or_clone(more);
                all.documents.extend(more.documents);
                all.counts.add(more.counts);
                Self::Documents(Arc::new(all))
            }
            (own, _) => own,
        }
    }

    /// The texts with spans, if the file has spans.
    pub fn documents(&self) -> Option<&Documents> {
        match self {
            Self::Documents(documents) => Some(documents),
            Self::Conll(_) | Self::Jsonl { .. } => None,
        }
    }
}

/// Reads sentences of any format.
#[derive(Debug)]
pub enum Reader<'t> {
    /// Reads CoNLL rows.
    Conll(ConllReader<'t>),
    /// Reads JSON lines.
    Jsonl(Box<JsonlReader<'t>>),
    /// Reads the sentences of texts with spans.
    Documents(DocumentReader),
}

impl<'t> Reader<'t> {
    /// Detects the structure of `source` and starts at its beginning. Fails as
    /// [`Structure::detect`] does.
    pub fn new(source: &'t Source, options: &ReadOptions) -> Result<Self, Error> {
        Ok(Self::with_structure(source, &Structure::detect(source, options)?))
    }

    /// Starts at the beginning of `source`, whose structure is known.
    pub fn with_structure(source: &'t Source, structure: &Structure) -> Self {
        let text = source.text();
        match structure {
            Structure::Conll(layout) => Self::Conll(ConllReader::new(text, layout.clone())),
            Structure::Jsonl { keys, names } => {
                let reader = JsonlReader::new(text, keys.clone(), names.clone());
                Self::Jsonl(Box::new(reader))
            }
            Structure::Documents(documents) => {
                Self::Documents(DocumentReader::new(Arc::clone(documents)))
            }
        }
    }

    /// Reads the next sentence into `record`. Returns false at the end of the file.
    ///
    /// Adds new entity types to `types`, and the problems of the lines to `problems`.
    pub fn read(
        &mut self,
        record: &mut Record<'t>,
        types: &mut EntityTypes,
        problems: &mut Problems,
    ) -> bool {
        match self {
            Reader::Conll(reader) => reader.read(record, types, problems),
            Reader::Jsonl(reader) => reader.read(record, types, problems),
            Reader::Documents(reader) => reader.read(record, types),
        }
    }

    /// The format of the file.
    pub fn format(&self) -> Format {
        match self {
            Reader::Conll(_) => Format::CONLL,
            Reader::Jsonl(_) => Format::JSONL,
            Reader::Documents(reader) => reader.documents().format,
        }
    }

    /// The number of bytes read so far, for progress.
    pub fn position(&self) -> usize {
        match self {
            Reader::Conll(reader) => reader.position(),
            Reader::Jsonl(reader) => reader.position(),
            Reader::Documents(reader) => reader.position(),
        }
    }

    /// The lines after the last sentence. They are known once the whole file is read.
    pub(crate) fn lines_after(&self) -> &[&'t str] {
        match self {
            Reader::Conll(reader) => reader.lines_after(),
            Reader::Jsonl(_) | Reader::Documents(_) => &[],
        }
    }
}

/// Writes sentences as CoNLL rows or JSON lines. Other formats write whole documents: [`Format::write`].
#[derive(Debug)]
pub enum Writer<W> {
    /// Writes CoNLL rows.
    Conll(ConllWriter<W>),
    /// Writes JSON lines.
    Jsonl(JsonlWriter<W>),
}

impl<W: Write> Writer<W> {
    /// Writes a sentence with `tags` in place of its own.
    pub fn write(
        &mut self,
        record: &Record<'_>,
        tags: &[Tag],
        types: &EntityTypes,
    ) -> io::Result<()> {
        match self {
            Writer::Conll(writer) => writer.write(record, tags, types),
            Writer::Jsonl(writer) => writer.write(record, tags, types),
        }
    }

    /// Writes a sentence without any change. The sentence must come from a file of the same format.
    pub fn copy(&mut self, record: &Record<'_>) -> io::Result<()> {
        match self {
            Writer::Conll(writer) => writer.copy(record),
            Writer::Jsonl(writer) => writer.copy(record),
        }
    }

    /// Writes the lines after the last sentence. Writes nothing to JSON lines, which cannot contain such lines.
    pub fn write_lines_after(&mut self, after: &[String]) -> io::Result<()> {
        match self {
            Writer::Conll(writer) => writer.write_lines_after(after),
            Writer::Jsonl(_) => Ok(()),
        }
    }

    /// The output.
    pub fn out(&mut self) -> &mut W {
        match self {
            Writer::Conll(writer) => writer.out(),
            Writer::Jsonl(writer) => writer.out(),
        }
    }

    /// Returns the output without flushing it.
    pub fn finish(self) -> W {
        match self {
            Writer::Conll(writer) => writer.finish(),
            Writer::Jsonl(writer) => writer.finish(),
        }
    }
}

/// Sets the columns that `options` name. Fails if a column does not exist, or if token and tag are in the same column.
pub(crate) fn choose_columns(mut layout: Layout, options: &ReadOptions) -> Result<Layout, Fault> {
    let (n_columns, detected) = (layout.n_columns, layout.tag);
    let from_one = |column: Option<usize>, chosen: usize| match column {
        None => Ok(chosen),
        Some(column) if (1..=n_columns).contains(&column) => Ok(column - 1),
        Some(column) => Err(Fault::NoSuchColumn { column, n_columns }),
    };
    layout.token = from_one(options.token_column, layout.token)?;
    layout.tag = from_one(options.tag_column, layout.tag)?;
    if options.tag_column.is_some() {
        layout.also_tags.clear();
    }
    if layout.tag != detected {
        layout.bare_types = false;
    }
    if layout.token == layout.tag {
        return Err(if n_columns == 1 {
            Fault::ColumnCount { found: 1, expected: 2, separator: Separator::Space }
        } else {
            Fault::SameColumn { column: layout.tag + 1 }
        });
    }
    Ok(layout)
}
