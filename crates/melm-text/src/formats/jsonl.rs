//! JSON lines with tokens and tags. The reader and the writer that keep all keys are in [`crate::jsonl`].

use super::json::find_array_problem;
use super::{FileFormat, Part, WriteSettings, WrittenFile};
use crate::error::Error;
use crate::format::{ReadOptions, Structure};
use crate::jsonl::{JsonlKeys, JsonlWriter, TAGS_KEYS};
use crate::record::Record;
use crate::source::Source;
use crate::spans::{Document, for_each_sentence};

/// The format `jsonl`.
#[derive(Debug)]
pub(super) struct Jsonl;

impl FileFormat for Jsonl {
    fn name(&self) -> &'static str {
        "jsonl"
    }

    fn extensions(&self) -> &'static [&'static str] {
        &["jsonl", "ndjson"]
    }

    fn holds(&self) -> &'static [Part] {
        &[Part::Tokens, Part::Sentences, Part::Ids]
    }

    fn detect(&self, source: &Source) -> bool {
        is_json(source.text())
    }

    fn read(&self, source: &Source, options: &ReadOptions) -> Result<Structure, Error> {
        let text = source.text();
        if is_array(text) {
            return Err(Error::data(source.name(), text, find_array_problem(text)));
        }
        let keys =
            JsonlKeys::detect(text, options.tokens_key.as_deref(), options.tags_key.as_deref());
        Ok(Structure::Jsonl { keys, names: options.names.clone() })
    }

    fn write(
        &self,
        documents: &[Document],
        settings: &WriteSettings,
    ) -> Result<Vec<WrittenFile>, Error> {
        let mut writer = JsonlWriter::new(Vec::new(), Some(settings.scheme), TAGS_KEYS[0], None);
        let write = |record: &Record<'_>, types: &_| writer.write(record, &record.tags, types);
        for_each_sentence(documents, settings.scheme, write)
            .map_err(|source| Error::Write { source })?;
        Ok(vec![WrittenFile { extension: "jsonl", bytes: writer.finish() }])
    }
}

/// Returns true if a text starts with a JSON object, or with an array of JSON objects.
pub(crate) fn is_json(text: &str) -> bool {
    let object = text.trim_ascii_start().strip_prefix('{').map(str::trim_ascii_start);
    object.is_some_and(|inside| inside.starts_with(['"', '}'])) || is_array(text)
}

/// Returns true if a text starts with an array of JSON objects.
pub(crate) fn is_array(text: &str) -> bool {
    let inside = text.trim_ascii_start().strip_prefix('[').map(str::trim_ascii_start);
    let object = inside.and_then(|inside| inside.strip_prefix('{')).map(str::trim_ascii_start);
    object.is_some_and(|object| object.starts_with('"'))
}
