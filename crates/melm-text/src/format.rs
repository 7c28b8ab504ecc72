//! The format of a file, and one reader and one writer for all formats.
//!
//! A new format needs a variant in each enum of this file, and a folder beside `conll` and `jsonl`
//! with a reader that fills a [`Record`] and a writer that takes one.

use std::io::{self, Write};
use std::path::Path;
use std::str::FromStr;

use crate::conll::{ConllReader, ConllWriter, Layout};
use crate::error::Error;
use crate::jsonl::{JsonlKeys, JsonlReader, JsonlWriter, TAGS_KEYS, TagNames, find_names_beside};
use crate::problem::{Fault, Problems};
use crate::record::Record;
use crate::scheme::Scheme;
use crate::source::Source;
use crate::tag::{EntityTypes, Tag};

/// A file format.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// One token with its tag on each line, an empty line after each sentence.
    Conll,
    /// One JSON object on each line.
    Jsonl,
}

impl Format {
    /// The name that command-line options and reports use.
    pub fn name(self) -> &'static str {
        match self {
            Format::Conll => "conll",
            Format::Jsonl => "jsonl",
        }
    }

    /// Detects the format from the start of a text: JSON lines if it starts with a JSON object,
    /// CoNLL otherwise.
    pub(crate) fn detect(text: &str) -> Self {
        let object = text.trim_ascii_start().strip_prefix('{');
        match object.map(str::trim_ascii_start) {
            Some(inside) if inside.starts_with(['"', '}']) => Format::Jsonl,
            _ => Format::Conll,
        }
    }

    /// Returns the format for the extension of a file name, or `None` if the extension is not known.
    pub fn from_file_name(name: &str) -> Option<Self> {
        let extension = name.rsplit_once('.').map_or("", |(_, extension)| extension);
        match extension.to_lowercase().as_str() {
            "jsonl" | "json" | "ndjson" => Some(Format::Jsonl),
            "conll" | "iob" | "bio" | "iob2" | "tsv" => Some(Format::Conll),
            _ => None,
        }
    }
}

impl FromStr for Format {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        match name {
            "conll" => Ok(Format::Conll),
            "jsonl" => Ok(Format::Jsonl),
            _ => Err("expected conll or jsonl".into()),
        }
    }
}

/// Settings for reading a file. Each setting that is `None` is detected from the file.
///
/// ```
/// use melm_text::{Corpus, Format, ReadOptions, Source};
/// let source = Source::from_text("a.conll", "B-LOC Bonn\nO is\n");
/// let options = ReadOptions {
///     format: Some(Format::Conll),
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
}

impl Structure {
    /// Detects the structure of `source`. Settings that `options` contain are not detected but used.
    ///
    /// Fails if a column of `options` does not exist, if token and tag are in the same column, or
    /// if the file is a single JSON array.
    pub fn detect(source: &Source, options: &ReadOptions) -> Result<Self, Error> {
        let text = source.text();
        let whole_file = |fault: Fault| {
            let mut problems = Problems::default();
            problems.push(1, 0..0, fault);
            Error::data(source.name(), text, problems)
        };
        let array = text.trim_ascii_start().strip_prefix('[').map(str::trim_ascii_start);
        if options.format != Some(Format::Conll) && array.is_some_and(|a| a.starts_with("{\"")) {
            return Err(whole_file(Fault::JsonArray));
        }
        match options.format.unwrap_or_else(|| Format::detect(text)) {
            Format::Conll => {
                choose_columns(Layout::detect(text), options).map(Self::Conll).map_err(whole_file)
            }
            Format::Jsonl => {
                let keys = JsonlKeys::detect(
                    text,
                    options.tokens_key.as_deref(),
                    options.tags_key.as_deref(),
                );
                Ok(Self::Jsonl { keys, names: options.names.clone() })
            }
        }
    }

    /// The format.
    pub fn format(&self) -> Format {
        match self {
            Self::Conll(_) => Format::Conll,
            Self::Jsonl { .. } => Format::Jsonl,
        }
    }

    /// The columns, if the file is CoNLL.
    pub fn layout(&self) -> Option<&Layout> {
        match self {
            Self::Conll(layout) => Some(layout),
            Self::Jsonl { .. } => None,
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
        }
    }

    /// The format of the file.
    pub fn format(&self) -> Format {
        match self {
            Reader::Conll(_) => Format::Conll,
            Reader::Jsonl(_) => Format::Jsonl,
        }
    }

    /// The number of bytes read so far, for progress.
    pub fn position(&self) -> usize {
        match self {
            Reader::Conll(reader) => reader.position(),
            Reader::Jsonl(reader) => reader.position(),
        }
    }

    /// The lines after the last sentence. They are known once the whole file is read.
    pub(crate) fn lines_after(&self) -> &[&'t str] {
        match self {
            Reader::Conll(reader) => reader.lines_after(),
            Reader::Jsonl(_) => &[],
        }
    }
}

/// Writes sentences of any format.
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
fn choose_columns(mut layout: Layout, options: &ReadOptions) -> Result<Layout, Fault> {
    let n_columns = layout.n_columns;
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
    if layout.token == layout.tag {
        return Err(if n_columns == 1 {
            Fault::ColumnCount { found: 1, expected: 2 }
        } else {
            Fault::SameColumn { column: layout.tag + 1 }
        });
    }
    Ok(layout)
}
