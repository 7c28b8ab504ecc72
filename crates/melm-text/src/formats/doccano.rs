//! Doccano: JSON lines with a text and `[start, end, type]` (`label`), or with objects (`entities`) beside relations.
//!
//! Offsets are UTF-16 units, because Doccano counts in the browser (doccano #2290, #2484). Projects may count grapheme
//! clusters instead: `--offsets graphemes`. The file has no text of the spans to compare with.

use serde_json::{Value, json};

use super::json::{
    JsonRecord, Lines, ObjectWriter, for_each_record, items, on_one_line, starts_with_keys,
    write_objects, wrong_value,
};
use super::{FileFormat, Format, Part, WriteSettings, WrittenFile};
use crate::error::Error;
use crate::format::{ReadOptions, Structure};
use crate::source::Source;
use crate::spans::{Document, DocumentsBuilder, OffsetMap, OffsetUnit, RawDocument, RawSpan, Span};

/// The format `doccano`.
#[derive(Debug)]
pub(super) struct Doccano;

const TEXT_KEYS: [&str; 2] = ["text", "data"];
const LABEL_KEYS: [&str; 4] = ["label", "labels", "entities", "annotations"];
const CURE: &str = "write spans as `\"label\": [[0, 5, \"PER\"]]`, or as `\"entities\": [{\"start_offset\": 0, \
                    \"end_offset\": 5, \"label\": \"PER\"}]`";

impl FileFormat for Doccano {
    fn name(&self) -> &'static str {
        "doccano"
    }

    fn extensions(&self) -> &'static [&'static str] {
        &["jsonl"]
    }

    fn holds(&self) -> &'static [Part] {
        &[Part::Text, Part::Documents, Part::Boundaries, Part::Ids, Part::Metadata, Part::Overlaps]
    }

    fn detect(&self, source: &Source) -> bool {
        let text = source.text();
        text.trim_ascii_start().starts_with('{')
            && TEXT_KEYS.iter().any(|text_key| {
                LABEL_KEYS.iter().any(|label| starts_with_keys(text, &[text_key, label]))
            })
            && !starts_with_keys(text, &["tokens"])
    }

    fn read(&self, source: &Source, options: &ReadOptions) -> Result<Structure, Error> {
        let mut builder = DocumentsBuilder::new(source, Format(&Self), OffsetUnit::Utf16, options);
        for_each_record(source, &mut builder, read_record);
        builder.finish()
    }

    fn write(&self, documents: &[Document], _: &WriteSettings) -> Result<Vec<WrittenFile>, Error> {
        let originals = documents.iter().find_map(|document| document.record(self.name()));
        let has_entities = originals.is_some_and(|raw| starts_with_keys(raw, &["entities"]));
        let write = |document: &Document| match document.original(self.name()) {
            Some(raw) => on_one_line(raw),
            None => write_record(document, has_entities),
        };
        Ok(write_objects("jsonl", documents.iter().map(write), false))
    }
}

/// The keys of a record that are not other values.
const OWN_KEYS: [&str; 7] = ["id", "text", "data", "label", "labels", "entities", "relations"];

fn read_record<'s>(
    record: JsonRecord<'s>,
    lines: &mut Lines<'s>,
    builder: &mut DocumentsBuilder<'s>,
) {
    let Some(text) = record.get::<String>(&TEXT_KEYS) else {
        let cure = "write the text as a string under `text`";
        return builder.report(record.place, wrong_value("text", "a string", cure));
    };
    let mut spans = Vec::new();
    for key in LABEL_KEYS {
        let Some(raw) = record.find(&[key]) else { continue };
        let Some(found) = items(raw) else {
            let fault = wrong_value(key, "a list of spans", CURE);
            return builder.report(lines.place(raw), fault);
        };
        for item in found {
            match parse_span(item) {
                Some(span) => spans.push(RawSpan { place: lines.place(item), ..span }),
                None => {
                    builder.report(lines.place(item), wrong_value(key, "a list of spans", CURE));
                }
            }
        }
    }
    let relations = record.find(&["relations"]).and_then(items).unwrap_or_default();
    builder.counts.leave_out("relations", relations.len());
    let metadata = record.metadata(&OWN_KEYS);
    builder.add(RawDocument { text, spans, metadata, ..record.document() });
}

fn parse_span(raw: &str) -> Option<RawSpan> {
    if let Ok((start, end, entity_type)) = serde_json::from_str::<(usize, usize, String)>(raw) {
        return Some(RawSpan { start, end, entity_type, ..RawSpan::default() });
    }
    let span: Value = serde_json::from_str(raw).ok()?;
    let offset = |keys: [&str; 2]| keys.iter().find_map(|key| span.get(key)?.as_u64());
    Some(RawSpan {
        start: usize::try_from(offset(["start_offset", "start"])?).ok()?,
        end: usize::try_from(offset(["end_offset", "end"])?).ok()?,
        entity_type: span.get("label")?.as_str()?.to_owned(),
        ..RawSpan::default()
    })
}

fn write_record(document: &Document, has_entities: bool) -> String {
    let offsets = OffsetMap::new(document.text(), OffsetUnit::Utf16);
    let entity = |(at, span): (usize, &Span)| {
        let (start, end) = (offsets.offset(span.range.start), offsets.offset(span.range.end));
        let label = &*span.entity_type;
        if has_entities {
            json!({ "id": at, "label": label, "start_offset": start, "end_offset": end })
        } else {
            json!([start, end, label])
        }
    };
    let spans: Vec<_> = document.spans().iter().enumerate().map(entity).collect();
    let object = ObjectWriter::default().id(document.id()).value("text", document.text());
    let object = if has_entities {
        object.value("entities", spans).value("relations", Vec::<Value>::new())
    } else {
        object.value("label", spans)
    };
    object.metadata(document.metadata(), &OWN_KEYS).finish()
}
