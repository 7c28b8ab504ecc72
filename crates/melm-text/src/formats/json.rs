//! What the JSON formats share: records of an array or of lines, their fields, and the places of problems.

use std::borrow::Cow;

use serde::de::{DeserializeOwned, IgnoredAny};
use serde_json::Value;
use serde_json::value::RawValue;

use super::WrittenFile;
use super::jsonl::is_array;
use crate::jsonl::parse_fields;
use crate::problem::{Fault, Problems};
use crate::source::Source;
use crate::spans::{DocumentsBuilder, Metadata, Place, RawDocument};

/// One JSON object of a file: its text and its fields, in order.
pub(super) struct JsonRecord<'t> {
    pub(super) raw: &'t str,
    pub(super) fields: Vec<(Cow<'t, str>, &'t str)>,
    /// Where problems of the record are reported.
    pub(super) place: Place,
    /// The byte of the file where the record ends.
    pub(super) end: usize,
}

impl<'t> JsonRecord<'t> {
    /// Returns the raw value of the first of `keys` that the object has and that is not null.
    pub(super) fn find(&self, keys: &[&str]) -> Option<&'t str> {
        let of_key = |key: &&str| self.fields.iter().find(|(own, _)| own == key);
        keys.iter().find_map(of_key).map(|(_, raw)| *raw).filter(|&raw| raw != "null")
    }

    /// Returns the value of a key, if it has the type `T`.
    pub(super) fn get<T: DeserializeOwned>(&self, keys: &[&str]) -> Option<T> {
        serde_json::from_str(self.find(keys)?).ok()
    }

    /// Returns the fields without those of `keys`.
    pub(super) fn metadata(&self, keys: &[&str]) -> Vec<Metadata> {
        let others = self.fields.iter().filter(|(key, _)| !keys.contains(&&**key));
        others.map(|(key, raw)| Metadata { key: (**key).into(), json: (*raw).into() }).collect()
    }

    /// Returns a document with the id, the original and the place of the record, without a text.
    pub(super) fn document(self) -> RawDocument {
        RawDocument {
            id: self.id(),
            original: Some(self.raw.to_owned()),
            place: self.place,
            end: self.end,
            ..RawDocument::default()
        }
    }

    /// Returns the id: a string without its quotes, or a number.
    pub(super) fn id(&self) -> Option<String> {
        match self.get::<Value>(&["id"])? {
            Value::String(id) => Some(id),
            Value::Number(id) => Some(id.to_string()),
            _ => None,
        }
    }
}

/// Finds the lines of parts of a text. It is fast if the parts come in order.
pub(super) struct Lines<'t> {
    text: &'t str,
    at: usize,
    line: usize,
}

impl<'t> Lines<'t> {
    pub(super) fn new(text: &'t str) -> Self {
        Self { text, at: 0, line: 1 }
    }

    /// Returns the place of `part`, which borrows from the text.
    pub(super) fn place(&mut self, part: &str) -> Place {
        let start = part.as_ptr().addr() - self.text.as_ptr().addr();
        if start < self.at {
            (self.at, self.line) = (0, 1);
        }
        let bytes = self.text.as_bytes();
        self.line += memchr::memchr_iter(b'\n', &bytes[self.at..start]).count();
        self.at = start;
        let line_start = memchr::memrchr(b'\n', &bytes[..start]).map_or(0, |at| at + 1);
        let length = part.find('\n').unwrap_or(part.len());
        Place { line: self.line, span: start - line_start..start - line_start + length }
    }

    /// The byte of the text where `part` ends.
    pub(super) fn end_of(&self, part: &str) -> usize {
        part.as_ptr().addr() - self.text.as_ptr().addr() + part.len()
    }
}

/// Calls `on_record` with each object of a file that is an array of objects, one object, or has an object on each line.
/// Reports what is not JSON.
pub(super) fn for_each_record<'s>(
    source: &'s Source,
    builder: &mut DocumentsBuilder<'s>,
    mut on_record: impl FnMut(JsonRecord<'s>, &mut Lines<'s>, &mut DocumentsBuilder<'s>),
) {
    let text = source.text();
    let mut lines = Lines::new(text);
    let mut read = |raw: &'s str, lines: &mut Lines<'s>, builder: &mut DocumentsBuilder<'s>| {
        let place = lines.place(raw);
        match parse_fields(raw) {
            Ok(fields) => {
                let end = lines.end_of(raw);
                on_record(JsonRecord { raw, fields, place, end }, lines, builder);
            }
            Err(found) => builder.report(place, found.fault),
        }
    };
    if is_array(text) || text.trim_ascii().starts_with('[') {
        match serde_json::from_str::<Vec<&'s RawValue>>(text) {
            Ok(records) => {
                for raw in records {
                    read(raw.get(), &mut lines, builder);
                }
            }
            Err(error) => {
                let (place, fault) = not_an_array(&error);
                builder.report(place, fault);
            }
        }
        return;
    }
    for line in text.split('\n') {
        let line = line.trim_ascii();
        if !line.is_empty() {
            read(line, &mut lines, builder);
        }
    }
}

/// Returns the problem of a text that starts as an array of objects and is not JSON lines: it is an array, or it is not
/// whole.
pub(crate) fn find_array_problem(text: &str) -> Problems {
    let mut problems = Problems::default();
    match serde_json::from_str::<IgnoredAny>(text) {
        Ok(_) => problems.push(1, 0..0, Fault::JsonArray),
        Err(error) => {
            let (place, fault) = not_an_array(&error);
            problems.push(place.line, place.span, fault);
        }
    }
    problems
}

fn not_an_array(error: &serde_json::Error) -> (Place, Fault) {
    let column = error.column().saturating_sub(1);
    let place = Place { line: error.line().max(1), span: column..column + 1 };
    let text = error.to_string();
    let message = text.split(" at line ").next().unwrap_or(&text);
    let fault = Fault::Record {
        message: format!("the file is not a JSON array: {message}"),
        cure: "the file may be truncated: export it again",
    };
    (place, fault)
}

/// Returns the raw items of a JSON list, or `None` if `raw` is not a list.
pub(super) fn items(raw: &str) -> Option<Vec<&str>> {
    let items: Vec<&RawValue> = serde_json::from_str(raw).ok()?;
    Some(items.into_iter().map(RawValue::get).collect())
}

/// Returns the first object of a text, if the text is JSON: the first of an array, or that of the first line. Reads no
/// more than that object.
pub(super) fn first_object(text: &str) -> Option<Vec<(Cow<'_, str>, &str)>> {
    let start = text.trim_ascii_start();
    let inside = start.strip_prefix('[').map_or(start, str::trim_ascii_start);
    if !inside.starts_with('{') {
        return None;
    }
    let mut values = serde_json::Deserializer::from_str(inside).into_iter::<&RawValue>();
    let raw = values.next()?.ok()?.get();
    parse_fields(raw).ok()
}

/// Returns true if the first object of a text has all of `keys`.
pub(super) fn starts_with_keys(text: &str, keys: &[&str]) -> bool {
    let fields = first_object(text).unwrap_or_default();
    let has = |key: &&str| fields.iter().any(|(own, _)| own == key);
    !fields.is_empty() && keys.iter().all(has)
}

/// Makes the fault for a value of the wrong form.
pub(super) fn wrong_value(key: &str, expected: &str, cure: &'static str) -> Fault {
    Fault::Record { message: format!("`{key}` is not {expected}"), cure }
}

/// Writes objects, one on each line. If `is_array`, they are the items of an array.
pub(super) fn write_objects(
    extension: &'static str,
    objects: impl Iterator<Item = String>,
    is_array: bool,
) -> Vec<WrittenFile> {
    let objects: Vec<String> = objects.collect();
    let text = match (is_array, objects.is_empty()) {
        (true, true) => "[]\n".to_owned(),
        (true, false) => format!("[\n{}\n]\n", objects.join(",\n")),
        (false, true) => String::new(),
        (false, false) => objects.join("\n") + "\n",
    };
    vec![WrittenFile { extension, bytes: text.into_bytes() }]
}

/// A JSON object that is written field by field.
#[derive(Default)]
pub(super) struct ObjectWriter {
    text: String,
}

impl ObjectWriter {
    /// Adds a key with a raw JSON value.
    pub(super) fn raw(mut self, key: &str, json: &str) -> Self {
        self.text.push(if self.text.is_empty() { '{' } else { ',' });
        self.text.push_str(&Value::from(key).to_string());
        self.text.push(':');
        // A value of another file may contain line breaks, which would end the record in JSON lines.
        if json.contains(['\n', '\r']) {
            let compact: Result<Value, _> = serde_json::from_str(json);
            self.text.push_str(&compact.map_or_else(|_| "null".into(), |value| value.to_string()));
        } else {
            self.text.push_str(json);
        }
        self
    }

    /// Adds a key with a value.
    pub(super) fn value(self, key: &str, value: impl Into<Value>) -> Self {
        let json = value.into().to_string();
        self.raw(key, &json)
    }

    /// Adds the id, as a number if it is one.
    pub(super) fn id(self, id: Option<&str>) -> Self {
        match id {
            None => self,
            Some(id) => match id.parse::<u64>() {
                Ok(number) if number.to_string() == id => self.value("id", number),
                _ => self.value("id", id),
            },
        }
    }

    /// Adds other values. Keys that the object must not have twice are given in `except`.
    pub(super) fn metadata(self, metadata: &[Metadata], except: &[&str]) -> Self {
        let others = metadata.iter().filter(|one| !except.contains(&&*one.key));
        others.fold(self, |object, one| object.raw(&one.key, &one.json))
    }

    /// Returns the object.
    pub(super) fn finish(self) -> String {
        if self.text.is_empty() { "{}".into() } else { self.text + "}" }
    }
}

/// Returns a record without line breaks, so that it is one line.
pub(super) fn on_one_line(raw: &str) -> String {
    if !raw.contains(['\n', '\r']) {
        return raw.to_owned();
    }
    // Line breaks inside of strings are escaped, so all others are white space between values.
    raw.lines().map(str::trim).collect()
}
