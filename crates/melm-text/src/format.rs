//! Which format a text is in, and one reader and one writer over all of them.
//!
//! This is the door for further formats: a variant here, a folder beside `conll` and `jsonl` with
//! a reader that fills a [`Record`], a writer that takes one.

use std::io::{self, Write};
use std::str::FromStr;

use crate::conll::{ConllReader, ConllWriter, Layout};
use crate::error::Error;
use crate::jsonl::{JsonlReader, JsonlWriter, TagNames};
use crate::problem::{Fault, Problems};
use crate::record::Record;
use crate::scheme::Scheme;
use crate::source::Source;
use crate::tag::{EntityTypes, Tag};

/// A file format.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// Columns, an empty line after each sentence.
    Conll,
    /// One JSON object a line.
    Jsonl,
}

impl Format {
    /// The name as options write it.
    pub fn name(self) -> &'static str {
        match self {
            Format::Conll => "conll",
            Format::Jsonl => "jsonl",
        }
    }

    /// Tells the format of a text from its start: an object with a key, or columns.
    pub fn detect(text: &str) -> Self {
        let object = text.trim_ascii_start().strip_prefix('{');
        match object.map(str::trim_ascii_start) {
            Some(inside) if inside.starts_with(['"', '}']) => Format::Jsonl,
            _ => Format::Conll,
        }
    }

    /// The format that a file name asks for, if its ending is one that people use.
    pub fn of_name(name: &str) -> Option<Self> {
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

/// What the user says about a file; whatever is `None` is told from the file.
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
    /// JSON lines: the names behind tag ids.
    pub names: Option<TagNames>,
}

/// Reads sentences of any format.
#[derive(Debug)]
pub enum Reader<'t> {
    /// Columns.
    Conll(ConllReader<'t>, Layout),
    /// JSON lines.
    Jsonl(Box<JsonlReader<'t>>),
}

impl<'t> Reader<'t> {
    /// Prepares to read `source`.
    pub fn new(source: &'t Source, options: &ReadOptions) -> Result<Self, Error> {
        let text = source.text();
        let whole = |fault: Fault| {
            let mut problems = Problems::default();
            problems.push(1, 0..0, fault);
            Error::data(source.name(), text, problems)
        };
        let array = text.trim_ascii_start().strip_prefix('[').map(str::trim_ascii_start);
        if options.format != Some(Format::Conll) && array.is_some_and(|a| a.starts_with("{\"")) {
            return Err(whole(Fault::JsonArray));
        }
        match options.format.unwrap_or_else(|| Format::detect(text)) {
            Format::Conll => {
                let layout = choose_columns(Layout::detect(text), options).map_err(whole)?;
                Ok(Reader::Conll(ConllReader::new(text, layout.clone()), layout))
            }
            Format::Jsonl => {
                let keys = (options.tokens_key.as_deref(), options.tags_key.as_deref());
                let mut reader = JsonlReader::new(text, keys);
                reader.set_names(options.names.clone());
                Ok(Reader::Jsonl(Box::new(reader)))
            }
        }
    }

    /// Reads the next sentence into `record`; false at the end.
    pub fn read(
        &mut self,
        record: &mut Record<'t>,
        types: &mut EntityTypes,
        problems: &mut Problems,
    ) -> bool {
        match self {
            Reader::Conll(reader, _) => reader.read(record, types, problems),
            Reader::Jsonl(reader) => reader.read(record, types, problems),
        }
    }

    /// The format it reads.
    pub fn format(&self) -> Format {
        match self {
            Reader::Conll(..) => Format::Conll,
            Reader::Jsonl(_) => Format::Jsonl,
        }
    }

    /// Bytes read so far, for progress.
    pub fn position(&self) -> usize {
        match self {
            Reader::Conll(reader, _) => reader.position(),
            Reader::Jsonl(reader) => reader.position(),
        }
    }

    /// Lines after the last sentence; complete once everything is read.
    pub(crate) fn after(&self) -> &[&'t str] {
        match self {
            Reader::Conll(reader, _) => reader.after(),
            Reader::Jsonl(_) => &[],
        }
    }
}

/// Writes sentences of any format.
#[derive(Debug)]
pub enum Writer<W> {
    /// Columns.
    Conll(ConllWriter<W>),
    /// JSON lines.
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

    /// Writes a sentence that came from the same format as it was.
    pub fn copy(&mut self, record: &Record<'_>) -> io::Result<()> {
        match self {
            Writer::Conll(writer) => writer.copy(record),
            Writer::Jsonl(writer) => writer.copy(record),
        }
    }

    /// Writes the lines after the last sentence, where the format has such.
    pub fn write_after(&mut self, after: &[String]) -> io::Result<()> {
        match self {
            Writer::Conll(writer) => writer.write_after(after),
            Writer::Jsonl(_) => Ok(()),
        }
    }

    /// What it writes to.
    pub fn out(&mut self) -> &mut W {
        match self {
            Writer::Conll(writer) => writer.out(),
            Writer::Jsonl(writer) => writer.out(),
        }
    }

    /// Hands the output back, as it is: flushing is left to the caller.
    pub fn finish(self) -> W {
        match self {
            Writer::Conll(writer) => writer.finish(),
            Writer::Jsonl(writer) => writer.finish(),
        }
    }
}

fn choose_columns(mut layout: Layout, options: &ReadOptions) -> Result<Layout, Fault> {
    let n_columns = layout.n_columns;
    let from_one = |column: Option<usize>, chosen: usize| match column {
        None => Ok(chosen),
        Some(column) if (1..=n_columns).contains(&column) => Ok(column - 1),
        Some(column) => Err(Fault::Column { column, n_columns }),
    };
    layout.token = from_one(options.token_column, layout.token)?;
    layout.tag = from_one(options.tag_column, layout.tag)?;
    if options.tag_column.is_some() {
        layout.also_tags.clear();
    }
    if layout.token == layout.tag {
        return Err(if n_columns == 1 {
            Fault::Ragged { found: 1, expected: 2 }
        } else {
            Fault::SameColumn { column: layout.tag + 1 }
        });
    }
    Ok(layout)
}
