//! GLiNER: an array of `{"tokenized_text": [...], "ner": [[first, last, type]]}`. The last token belongs to the span.

use std::ops::Range;

use serde_json::json;

use super::json::{
    JsonRecord, Lines, ObjectWriter, for_each_record, items, on_one_line, starts_with_keys,
    write_objects, wrong_value,
};
use super::{FileFormat, Format, Part, WriteSettings, WrittenFile};
use crate::error::Error;
use crate::format::{ReadOptions, Structure};
use crate::problem::Fault;
use crate::source::Source;
use crate::spans::{Document, DocumentsBuilder, RawDocument, RawSpan};

/// The format `gliner`.
#[derive(Debug)]
pub(super) struct Gliner;

const CURE: &str =
    "write spans as `\"ner\": [[0, 1, \"person\"]]`, with the first and the last token";

impl FileFormat for Gliner {
    fn name(&self) -> &'static str {
        "gliner"
    }

    fn extensions(&self) -> &'static [&'static str] {
        &["json"]
    }

    fn holds(&self) -> &'static [Part] {
        &[Part::Tokens, Part::Sentences]
    }

    fn detect(&self, source: &Source) -> bool {
        starts_with_keys(source.text(), &["tokenized_text"])
    }

    fn read(&self, source: &Source, options: &ReadOptions) -> Result<Structure, Error> {
        let mut builder = DocumentsBuilder::for_tokens(source, Format(&Self), options);
        for_each_record(source, &mut builder, read_record);
        builder.finish()
    }

    fn write(&self, documents: &[Document], _: &WriteSettings) -> Result<Vec<WrittenFile>, Error> {
        let mut objects = Vec::new();
        for document in documents {
            match document.original(self.name()) {
                Some(raw) => objects.push(on_one_line(raw)),
                None => objects.extend(document.sentences().iter().map(|sentence| {
                    let tokens: Vec<&str> = document.sentence_tokens(sentence).collect();
                    let spans = document
                        .sentence_mentions(sentence)
                        .map(|(tokens, name)| json!([tokens.start, tokens.end - 1, name]));
                    let spans: Vec<_> = spans.collect();
                    ObjectWriter::default()
                        .value("tokenized_text", tokens)
                        .value("ner", spans)
                        .finish()
                })),
            }
        }
        Ok(write_objects("json", objects.into_iter(), true))
    }
}

fn read_record<'s>(
    record: JsonRecord<'s>,
    lines: &mut Lines<'s>,
    builder: &mut DocumentsBuilder<'s>,
) {
    let Some(tokens) = record.get::<Vec<String>>(&["tokenized_text"]) else {
        let cure = "write the tokens as a list of strings under `tokenized_text`";
        let fault = wrong_value("tokenized_text", "a list of strings", cure);
        return builder.report(record.place, fault);
    };
    let RawDocument { text, tokens, sentences, .. } = RawDocument::from_tokens(&tokens);
    let ranges = tokens.as_deref().unwrap_or_default();
    let mut spans = Vec::new();
    for item in record.find(&["ner"]).and_then(items).unwrap_or_default() {
        let place = lines.place(item);
        match parse_span(item, ranges) {
            Ok(span) => spans.push(RawSpan { place, ..span }),
            Err(fault) => builder.report(place, fault),
        }
    }
    let metadata = record.metadata(&["id", "tokenized_text", "ner"]);
    builder.add(RawDocument { text, spans, tokens, sentences, metadata, ..record.document() });
}

/// Parses `[first, last, type]`. `tokens` are the bytes of the tokens. Fails if the value is not a span of these tokens.
fn parse_span(raw: &str, tokens: &[Range<usize>]) -> Result<RawSpan, Fault> {
    let Ok((first, last, entity_type)) = serde_json::from_str::<(usize, usize, String)>(raw) else {
        return Err(wrong_value("ner", "a list of spans", CURE));
    };
    match (tokens.get(first), tokens.get(last)) {
        (Some(from), Some(to)) if first <= last => {
            let (start, end) = (from.start, to.end);
            Ok(RawSpan { start, end, entity_type, ..RawSpan::default() })
        }
        _ => {
            let n = tokens.len();
            let message =
                format!("the span {first} to {last} is not in the text, which has {n} tokens");
            Err(Fault::Record { message, cure: CURE })
        }
    }
}
