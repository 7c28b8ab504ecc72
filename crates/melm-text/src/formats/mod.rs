//! The registry of file formats.
//!
//! A new format is one file in this folder with a type that implements [`FileFormat`], and one line in `REGISTRY`.
//! Everything else (`--format`, `--to`, detection, `convert`, `tag`, `augment`) finds it there.

mod brat;
mod conll;
mod doccano;
mod gliner;
mod json;
mod jsonl;
mod label_studio;
#[cfg(feature = "parquet")]
mod parquet;
mod prodigy;
mod spacy;

pub(crate) use json::find_array_problem;
pub(crate) use jsonl::{is_array, is_json};

use std::fmt;
use std::str::FromStr;

use crate::error::Error;
use crate::format::{ReadOptions, Structure};
use crate::scheme::Scheme;
use crate::source::Source;
use crate::spans::Document;

/// All formats. The first one whose [`FileFormat::detect`] returns true reads a file; CoNLL reads what is left.
static REGISTRY: &[&dyn FileFormat] = &[
    &spacy::Spacy,
    #[cfg(feature = "parquet")]
    &parquet::Parquet,
    &brat::Brat,
    &label_studio::LabelStudio,
    &gliner::Gliner,
    &prodigy::Prodigy,
    &doccano::Doccano,
    &jsonl::Jsonl,
    &conll::Conll,
];

/// A file format: its name, how it is recognised, and how it is read and written.
pub trait FileFormat: fmt::Debug + Sync {
    /// The name for `--format`, `--to` and reports.
    fn name(&self) -> &'static str;

    /// The usual endings of file names, without the period. Output files get the first one.
    fn extensions(&self) -> &'static [&'static str];

    /// The endings of the files that [`Self::write`] returns, in the same order. Most formats write one file.
    fn written_extensions(&self) -> &'static [&'static str] {
        &self.extensions()[..1]
    }

    /// The parts of labelled text that a file of this format can store, beside mentions.
    fn holds(&self) -> &'static [Part];

    /// Returns true if `bytes` are the start of a binary file of this format. Text formats return false.
    fn is_binary(&self, _bytes: &[u8]) -> bool {
        false
    }

    /// Returns true if the content of `source` looks like this format.
    fn detect(&self, source: &Source) -> bool;

    /// Reads a file. Formats with spans use [`crate::DocumentsBuilder`], whose result is the structure.
    ///
    /// Fails with all problems of the file.
    fn read(&self, source: &Source, options: &ReadOptions) -> Result<Structure, Error>;

    /// Writes documents. Returns one file for each ending that the format needs, the first one of
    /// [`Self::extensions`] first.
    fn write(
        &self,
        documents: &[Document],
        settings: &WriteSettings,
    ) -> Result<Vec<WrittenFile>, Error>;
}

/// A part of labelled text that some formats cannot store. `convert` counts what is lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// The text with its spacing. A format without it stores only tokens.
    Text,
    /// The tokens. A reader of a format without them has to find them again.
    Tokens,
    /// Where the sentences of a text start. A reader of a format without it has to find them again.
    Sentences,
    /// Texts of several sentences. A format without them stores each sentence as a record of its own.
    Documents,
    /// The boundaries between documents. A format without them stores all texts as one.
    Boundaries,
    /// Ids of records.
    Ids,
    /// Any other values of a record.
    Metadata,
    /// Spans that overlap.
    Overlaps,
    /// Other columns of CoNLL rows.
    Columns,
}

impl Part {
    /// A short name for tables.
    pub fn name(self) -> &'static str {
        match self {
            Self::Text => "spacing",
            Self::Tokens => "tokens",
            Self::Sentences => "sentence starts",
            Self::Documents => "sentences",
            Self::Boundaries => "boundaries",
            Self::Ids => "ids",
            Self::Metadata => "values",
            Self::Overlaps => "overlaps",
            Self::Columns => "columns",
        }
    }

    /// What is lost if a format cannot store this part: one thing, to be written after a number and `×`.
    pub fn describe_loss(self) -> &'static str {
        match self {
            Self::Text => "the spacing of a text",
            Self::Tokens => {
                "the tokens or sentences of a text, which are found differently when it is read"
            }
            Self::Sentences => {
                "the sentences of a text, which are found differently when it is read"
            }
            Self::Documents => "a text of several sentences, which becomes several records",
            Self::Boundaries => "a boundary between texts",
            Self::Ids => "an id",
            Self::Metadata => "another value",
            Self::Overlaps => "a span that overlaps a longer one",
            Self::Columns => "another column",
        }
    }
}

/// Which annotation of a Label Studio task is read, if there are several.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum AnnotationChoice {
    /// The ground truth if one is marked, otherwise the first one.
    #[default]
    First,
    /// The last one.
    Last,
    /// All of them together. Spans that occur in several annotations are read once.
    Merge,
}

impl FromStr for AnnotationChoice {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        match name {
            "first" => Ok(Self::First),
            "last" => Ok(Self::Last),
            "merge" => Ok(Self::Merge),
            _ => Err("expected first, last or merge".into()),
        }
    }
}

/// Settings for writing documents.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WriteSettings {
    /// The scheme of tags, for formats with tags.
    pub scheme: Scheme,
    /// True if the spans are suggestions that no person has confirmed. Label Studio gets them as predictions, and Prodigy
    /// gets no answer. Other formats do not distinguish them.
    pub are_suggestions: bool,
}

impl WriteSettings {
    /// Settings for confirmed spans.
    pub fn new(scheme: Scheme) -> Self {
        Self { scheme, are_suggestions: false }
    }
}

impl Default for WriteSettings {
    fn default() -> Self {
        Self::new(Scheme::Iob2)
    }
}

/// A file that a format has written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WrittenFile {
    /// The ending of its name, without the period.
    pub extension: &'static str,
    /// Its content.
    pub bytes: Vec<u8>,
}

/// A registered file format.
#[derive(Clone, Copy)]
pub struct Format(&'static dyn FileFormat);

impl Format {
    /// One token with its tag on each line, an empty line after each sentence.
    pub const CONLL: Self = Self(&conll::Conll);
    /// One JSON object with tokens and tags on each line.
    pub const JSONL: Self = Self(&jsonl::Jsonl);

    /// All formats.
    pub fn all() -> impl ExactSizeIterator<Item = Self> {
        REGISTRY.iter().map(|&format| Self(format))
    }

    /// The names of all formats, separated by commas.
    pub fn names() -> String {
        Self::all().map(Self::name).collect::<Vec<_>>().join(", ")
    }

    /// The name that command-line options and reports use.
    pub fn name(self) -> &'static str {
        self.0.name()
    }

    /// The endings of file names, without the period. The first one is used for output files.
    pub fn extensions(self) -> &'static [&'static str] {
        self.0.extensions()
    }

    /// The endings of the files that [`Self::write`] returns, in the same order. Most formats write one file.
    pub fn written_extensions(self) -> &'static [&'static str] {
        self.0.written_extensions()
    }

    /// Returns true if the format stores mentions as tags, which have a scheme.
    pub fn has_tags(self) -> bool {
        ["conll", "jsonl", "parquet"].contains(&self.name())
    }

    /// Returns true if each text is a file of its own, whose name is the id and `.txt` (BRAT).
    pub(crate) fn has_text_files(self) -> bool {
        self.name() == "brat"
    }

    /// Returns true if the format can store a part of labelled text.
    pub fn holds(self, part: Part) -> bool {
        self.0.holds().contains(&part)
    }

    /// Detects the format from the content of a file. A file that no format recognises is CoNLL.
    pub fn detect(source: &Source) -> Self {
        Self::all().find(|format| format.0.detect(source)).unwrap_or(Self::CONLL)
    }

    /// Returns true if `bytes` are a binary file of a registered format.
    pub(crate) fn is_known_binary(bytes: &[u8]) -> bool {
        Self::all().any(|format| format.0.is_binary(bytes))
    }

    /// Returns all formats with the ending of a file name.
    pub fn with_extension(name: &str) -> Vec<Self> {
        let name = name.rsplit(['/', '\\']).next().unwrap_or(name);
        let extension = name.rsplit_once('.').map_or("", |(_, extension)| extension).to_lowercase();
        Self::all().filter(|format| format.extensions().contains(&extension.as_str())).collect()
    }

    /// Reads a file of this format: see [`FileFormat::read`].
    pub fn read(self, source: &Source, options: &ReadOptions) -> Result<Structure, Error> {
        self.0.read(source, options)
    }

    /// Writes documents in this format: see [`FileFormat::write`].
    pub fn write(
        self,
        documents: &[Document],
        settings: &WriteSettings,
    ) -> Result<Vec<WrittenFile>, Error> {
        self.0.write(documents, settings)
    }
}

impl PartialEq for Format {
    fn eq(&self, other: &Self) -> bool {
        self.name() == other.name()
    }
}

impl Eq for Format {}

impl fmt::Debug for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Format {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        let found = Self::all().find(|format| format.name() == name);
        found.ok_or_else(|| format!("expected one of {}", Self::names()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_and_parsed() {
        for format in Format::all() {
            assert_eq!(format.name().parse(), Ok(format));
            assert_eq!(Format::all().filter(|&other| other == format).count(), 1);
            assert!(!format.extensions().is_empty());
        }
        assert!("xyz".parse::<Format>().is_err());
    }

    #[test]
    fn the_written_files_have_the_endings_that_a_format_names() {
        for format in Format::all() {
            let files = format.write(&[], &WriteSettings::default()).unwrap();
            let endings: Vec<_> = files.iter().map(|file| file.extension).collect();
            assert_eq!(endings, format.written_extensions(), "{}", format.name());
        }
    }

    #[test]
    fn the_ending_of_a_name_says_the_formats() {
        let names = |name: &str| -> Vec<_> {
            Format::with_extension(name).into_iter().map(Format::name).collect()
        };
        assert_eq!(names("a.b/x.IOB"), ["conll"]);
        assert!(names("x.jsonl").contains(&"jsonl") && names("x.jsonl").contains(&"doccano"));
        assert_eq!(names("x.xyz"), [""; 0]);
        assert_eq!(names("a.conll/x"), [""; 0]);
    }
}
