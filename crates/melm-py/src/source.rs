//! Labelled data as Python passes it: a file, or the content of a file in memory.

use std::path::{Path, PathBuf};
use std::str::FromStr;

use melm_cli::host::{self, ErrorReport};
use melm_text::jsonl::parse_names;
use melm_text::score::FileInput;
use melm_text::{Encoding, ReadOptions};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::error::to_exception;

/// The content of a file, and how to read it. The options are those of the command.
#[pyclass(frozen, module = "melm._melm")]
pub(crate) struct Source {
    pub(crate) source: melm_text::Source,
    pub(crate) options: ReadOptions,
}

#[pymethods]
impl Source {
    /// Reads a file.
    #[staticmethod]
    fn open(py: Python<'_>, path: PathBuf, options: &Bound<'_, PyDict>) -> PyResult<Self> {
        let (read_options, encoding) = parse_options(options, &path)?;
        let limits = host::limits().map_err(to_exception)?;
        py.detach(|| {
            let source = melm_text::Source::open_within(&path, encoding, limits)?;
            Ok(Self { source, options: read_options.with_names_beside(&path) })
        })
        .map_err(|error: melm_text::Error| to_exception(error))
    }

    /// Takes the content of a file. `name` is the name for messages.
    #[staticmethod]
    fn from_bytes(name: &str, content: Vec<u8>, options: &Bound<'_, PyDict>) -> PyResult<Self> {
        let (options, encoding) = parse_options(options, Path::new(name))?;
        let source = melm_text::Source::from_bytes(name.to_owned(), content, encoding);
        Ok(Self { source: source.map_err(to_exception)?, options })
    }
}

impl Source {
    pub(crate) fn as_input(&self) -> FileInput<'_> {
        FileInput { source: &self.source, options: &self.options }
    }
}

/// Parses the options for reading a file: those of the command, with underscores.
fn parse_options(options: &Bound<'_, PyDict>, path: &Path) -> PyResult<(ReadOptions, Encoding)> {
    let mut read = ReadOptions::default();
    let mut encoding = Encoding::default();
    let mut names: Option<String> = None;
    for (key, value) in options {
        let key: String = key.extract()?;
        match key.as_str() {
            "format" => read.format = Some(parse(&key, &value)?),
            "scheme" => read.scheme = Some(parse(&key, &value)?),
            "token_column" => read.token_column = Some(value.extract()?),
            "tag_column" => read.tag_column = Some(value.extract()?),
            "tokens_key" => read.tokens_key = Some(value.extract()?),
            "tags_key" => read.tags_key = Some(value.extract()?),
            "names" => names = Some(value.extract::<Vec<String>>()?.join("\n")),
            "offsets" => read.offset_unit = Some(parse(&key, &value)?),
            "overlaps" => read.overlaps = parse(&key, &value)?,
            "annotations" => read.annotations = parse(&key, &value)?,
            "encoding" => encoding = parse(&key, &value)?,
            "keeps_unlabelled" => read.keeps_unlabelled = value.extract()?,
            _ => return Err(to_exception(unknown(&key))),
        }
    }
    if let Some(names) = names {
        let key = read.tags_key.as_deref().unwrap_or("ner_tags");
        let parsed = parse_names(&names, key);
        let wrong = || ErrorReport::config(format!("`names` of `{}` are no tags", path.display()));
        read.names = Some(parsed.ok_or_else(|| to_exception(wrong()))?);
    }
    Ok((read, encoding))
}

fn unknown(key: &str) -> ErrorReport {
    ErrorReport::config(format!(
        "there is no option `{key}` for reading data; use one of format, scheme, token_column, tag_column, tokens_key, \
         tags_key, names, offsets, overlaps, annotations, encoding"
    ))
}

/// Parses a value that is given as text.
fn parse<T: FromStr>(key: &str, value: &Bound<'_, PyAny>) -> PyResult<T>
where
    T::Err: std::fmt::Display,
{
    let text: String = value.extract()?;
    let wrong =
        |error: T::Err| to_exception(ErrorReport::config(format!("`{key}={text}`: {error}")));
    text.parse().map_err(wrong)
}
