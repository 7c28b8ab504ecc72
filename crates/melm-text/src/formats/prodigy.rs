//! Prodigy: JSON lines with a text, its tokens and spans, as `ner.manual` and `db-out` write them.
//!
//! Offsets are code points. Only examples that were accepted are read; the others are counted.

use serde::Deserialize;
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

/// The format `prodigy`.
#[derive(Debug)]
pub(super) struct Prodigy;

const SPAN_CURE: &str = "write spans as `{\"start\": 0, \"end\": 5, \"label\": \"PER\"}`";
const TOKEN_CURE: &str =
    "write tokens as `{\"text\": \"Ada\", \"start\": 0, \"end\": 3, \"id\": 0}`, or leave them out";

impl FileFormat for Prodigy {
    fn name(&self) -> &'static str {
        "prodigy"
    }

    fn extensions(&self) -> &'static [&'static str] {
        &["jsonl"]
    }

    fn holds(&self) -> &'static [Part] {
        &[
            Part::Text,
            Part::Tokens,
            Part::Documents,
            Part::Boundaries,
            Part::Ids,
            Part::Metadata,
            Part::Overlaps,
        ]
    }

    fn detect(&self, source: &Source) -> bool {
        let text = source.text();
        text.trim_ascii_start().starts_with('{') && starts_with_keys(text, &["text", "spans"])
    }

    fn read(&self, source: &Source, options: &ReadOptions) -> Result<Structure, Error> {
        let mut builder =
            DocumentsBuilder::new(source, Format(&Self), OffsetUnit::CodePoint, options);
        let keeps_all = options.keeps_unlabelled;
        for_each_record(source, &mut builder, |record, lines, builder| {
            let answer: Option<String> = record.get(&["answer"]);
            match answer.as_deref() {
                Some("reject") if !keeps_all => builder.counts.leave_out("rejected examples", 1),
                Some("ignore") if !keeps_all => builder.counts.leave_out("ignored examples", 1),
                _ => read_record(record, lines, builder),
            }
        });
        builder.finish()
    }

    fn write(
        &self,
        documents: &[Document],
        settings: &WriteSettings,
    ) -> Result<Vec<WrittenFile>, Error> {
        let write = |document: &Document| match document.original(self.name()) {
            Some(raw) => on_one_line(raw),
            None => write_record(document, settings.are_suggestions),
        };
        Ok(write_objects("jsonl", documents.iter().map(write), false))
    }
}

/// The keys of a record that are not other values.
const OWN_KEYS: [&str; 5] = ["id", "text", "spans", "tokens", "answer"];

#[derive(Deserialize)]
struct SpanJson {
    start: usize,
    end: usize,
    label: String,
    text: Option<String>,
}

#[derive(Deserialize)]
struct TokenJson {
    start: usize,
    end: usize,
    text: Option<String>,
}

fn read_record<'s>(
    record: JsonRecord<'s>,
    lines: &mut Lines<'s>,
    builder: &mut DocumentsBuilder<'s>,
) {
    let Some(text) = record.get::<String>(&["text"]) else {
        let cure = "write the text as a string under `text`";
        return builder.report(record.place, wrong_value("text", "a string", cure));
    };
    let spans = read_spans(&record, lines, builder);
    let tokens = record.find(&["tokens"]).map(|raw| (raw, read_tokens(&text, raw, builder.unit())));
    if let Some((raw, None)) = tokens {
        let fault = wrong_value("tokens", "a list of tokens of the text, in order", TOKEN_CURE);
        return builder.report(lines.place(raw), fault);
    }
    let tokens = tokens.and_then(|(_, tokens)| tokens);
    let metadata = record.metadata(&OWN_KEYS);
    builder.add(RawDocument { text, spans, tokens, metadata, ..record.document() });
}

/// Returns the spans of a record. Reports those that are not valid.
fn read_spans<'s>(
    record: &JsonRecord<'s>,
    lines: &mut Lines<'s>,
    builder: &mut DocumentsBuilder<'s>,
) -> Vec<RawSpan> {
    let mut spans = Vec::new();
    for item in record.find(&["spans"]).and_then(items).unwrap_or_default() {
        let place = lines.place(item);
        match serde_json::from_str::<SpanJson>(item) {
            Ok(SpanJson { start, end, label, text }) => {
                spans.push(RawSpan { start, end, entity_type: label, surface: text, place });
            }
            Err(_) => builder.report(place, wrong_value("spans", "a list of spans", SPAN_CURE)),
        }
    }
    spans
}

/// Returns the bytes of the tokens, or `None` if they are not in order or not in the text.
fn read_tokens(text: &str, raw: &str, unit: OffsetUnit) -> Option<Vec<std::ops::Range<usize>>> {
    let tokens: Vec<TokenJson> = serde_json::from_str(raw).ok()?;
    let offsets = OffsetMap::new(text, unit);
    let mut at = 0;
    let mut ranges = Vec::with_capacity(tokens.len());
    for token in tokens {
        let range = offsets.to_byte(token.start).ok()?..offsets.to_byte(token.end).ok()?;
        let is_stated =
            token.text.as_deref().is_none_or(|stated| text.get(range.clone()) == Some(stated));
        if range.start < at || range.end < range.start || !is_stated {
            return None;
        }
        at = range.end;
        if !range.is_empty() {
            ranges.push(range);
        }
    }
    Some(ranges)
}

fn write_record(document: &Document, are_suggestions: bool) -> String {
    let text = document.text();
    let offsets = OffsetMap::new(text, OffsetUnit::CodePoint);
    let ranges = document.tokens();
    let tokens = ranges.iter().enumerate().map(|(id, token)| {
        json!({
            "text": &text[token.clone()],
            "start": offsets.offset(token.start),
            "end": offsets.offset(token.end),
            "id": id,
            "ws": text[token.end..].starts_with(char::is_whitespace),
        })
    });
    let tokens: Vec<Value> = tokens.collect();
    let to_json = |span: &Span| {
        let mut json = json!({
            "start": offsets.offset(span.range.start),
            "end": offsets.offset(span.range.end),
            "label": &*span.entity_type,
        });
        let first = ranges.binary_search_by_key(&span.range.start, |token| token.start);
        let last = ranges.binary_search_by_key(&span.range.end, |token| token.end);
        // An overlapping span may cut a token; Prodigy then finds the tokens itself.
        if let (Ok(first), Ok(last)) = (first, last) {
            json["token_start"] = first.into();
            json["token_end"] = last.into();
        }
        json
    };
    let spans: Vec<Value> = document.spans().iter().map(to_json).collect();
    let record = ObjectWriter::default()
        .id(document.id())
        .value("text", text)
        .metadata(document.metadata(), &OWN_KEYS)
        .value("tokens", tokens)
        .value("spans", spans);
    if are_suggestions { record.finish() } else { record.value("answer", "accept").finish() }
}
