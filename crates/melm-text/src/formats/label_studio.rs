//! Label Studio: an array of tasks with annotations, as `JSON` exports it, or flat objects, as `JSON_MIN` does.
//!
//! Offsets are code points. Old exports count UTF-16 units (label-studio #1347): `--offsets utf16`. Most exports state the
//! text of each span, which is compared with the offsets. A task may have several annotations: `--annotations`.

use std::borrow::Cow;

use serde_json::{Value, json};

use super::json::{
    JsonRecord, Lines, ObjectWriter, for_each_record, items, on_one_line, starts_with_keys,
    write_objects, wrong_value,
};
use super::{AnnotationChoice, FileFormat, Format, Part, WriteSettings, WrittenFile};
use crate::error::Error;
use crate::format::{ReadOptions, Structure};
use crate::jsonl::parse_fields;
use crate::problem::Fault;
use crate::source::Source;
use crate::spans::{
    Document, DocumentsBuilder, Metadata, OffsetMap, OffsetUnit, Place, RawDocument, RawSpan,
};

/// The format `label-studio`.
#[derive(Debug)]
pub(super) struct LabelStudio;

/// The usual name of the text in `data`.
const TEXT: &str = "text";
const CURE: &str = "export the project as JSON from Label Studio";

impl FileFormat for LabelStudio {
    fn name(&self) -> &'static str {
        "label-studio"
    }

    fn extensions(&self) -> &'static [&'static str] {
        &["json"]
    }

    fn holds(&self) -> &'static [Part] {
        &[Part::Text, Part::Documents, Part::Boundaries, Part::Ids, Part::Metadata, Part::Overlaps]
    }

    fn detect(&self, source: &Source) -> bool {
        let text = source.text();
        let is_flat = || {
            text.trim_ascii_start().starts_with('[')
                && starts_with_keys(text, &[TEXT])
                && ["label", "annotator", "annotation_id"]
                    .iter()
                    .any(|key| starts_with_keys(text, &[key]))
        };
        let is_task = starts_with_keys(text, &["data"])
            && ["annotations", "completions", "predictions"]
                .iter()
                .any(|key| starts_with_keys(text, &[key]));
        is_task || is_flat()
    }

    fn read(&self, source: &Source, options: &ReadOptions) -> Result<Structure, Error> {
        let mut builder =
            DocumentsBuilder::new(source, Format(&Self), OffsetUnit::CodePoint, options);
        for_each_record(source, &mut builder, |record, lines, builder| {
            let is_task = record.find(&["data"]).is_some_and(|data| data.starts_with('{'));
            if is_task {
                read_task(record, options, lines, builder);
            } else {
                read_flat(record, options, lines, builder);
            }
        });
        builder.finish()
    }

    fn write(
        &self,
        documents: &[Document],
        settings: &WriteSettings,
    ) -> Result<Vec<WrittenFile>, Error> {
        let mut originals = documents.iter().filter_map(|one| one.record(self.name()));
        let names = originals.find_map(Names::find).unwrap_or_default();
        let write = |document: &Document| match document.original(self.name()) {
            Some(raw) => on_one_line(raw),
            None => write_task(document, &names, settings.are_suggestions),
        };
        Ok(write_objects("json", documents.iter().map(write), true))
    }
}

/// Reads a task: `data` with the text, and annotations with results.
fn read_task<'s>(
    record: JsonRecord<'s>,
    options: &ReadOptions,
    lines: &mut Lines<'s>,
    builder: &mut DocumentsBuilder<'s>,
) {
    let data = record.find(&["data"]).unwrap_or("{}");
    let data = parse_fields(data).unwrap_or_default();
    let Some((text_key, text)) = find_text(&data) else {
        let fault = wrong_value("data", "an object with a text", CURE);
        return builder.report(record.place, fault);
    };
    let annotations = record.find(&["annotations", "completions"]).and_then(items);
    let annotations: Vec<Annotation<'_>> =
        annotations.unwrap_or_default().into_iter().map(Annotation::new).collect();
    let n_all = annotations.len();
    let usable: Vec<_> = annotations.into_iter().filter(|one| !one.is_cancelled).collect();
    builder.counts.leave_out("cancelled annotations", n_all - usable.len());
    if usable.is_empty() && !options.keeps_unlabelled {
        return builder.counts.leave_out("tasks without an annotation", 1);
    }
    let chosen = choose(usable, options.annotations, builder);
    let mut spans: Vec<RawSpan> = Vec::new();
    for raw in chosen.into_iter().flat_map(|one| one.results) {
        read_result(raw, &mut spans, lines, builder);
    }
    let others = data.iter().filter(|(key, _)| *key != text_key);
    let others = others.map(|(key, raw)| Metadata { key: (**key).into(), json: (*raw).into() });
    let metadata = others.collect();
    builder.add(RawDocument { text, spans, metadata, ..record.document() });
}

/// Returns the key and the value of the text in the data of a task: `text`, or else the first string.
fn find_text<'d>(data: &'d [(Cow<'_, str>, &str)]) -> Option<(&'d str, String)> {
    let mut strings = data
        .iter()
        .filter_map(|(key, raw)| Some((&**key, serde_json::from_str::<String>(raw).ok()?)));
    strings.clone().find(|(key, _)| *key == TEXT).or_else(|| strings.next())
}

/// One annotation of a task.
struct Annotation<'t> {
    results: Vec<&'t str>,
    is_cancelled: bool,
    is_ground_truth: bool,
}

impl<'t> Annotation<'t> {
    fn new(raw: &'t str) -> Self {
        let fields = parse_fields(raw).unwrap_or_default();
        let find = |key: &str| fields.iter().find(|(own, _)| own == key).map(|(_, raw)| *raw);
        Self {
            results: find("result").and_then(items).unwrap_or_default(),
            is_cancelled: find("was_cancelled") == Some("true"),
            is_ground_truth: find("ground_truth") == Some("true"),
        }
    }
}

/// Chooses among the annotations of a task, and counts those that are not read.
fn choose<'t>(
    mut annotations: Vec<Annotation<'t>>,
    choice: AnnotationChoice,
    builder: &mut DocumentsBuilder<'_>,
) -> Vec<Annotation<'t>> {
    if choice == AnnotationChoice::Merge || annotations.len() < 2 {
        return annotations;
    }
    let truth = annotations.iter().position(|one| one.is_ground_truth);
    let at = match choice {
        AnnotationChoice::Last => annotations.len() - 1,
        _ => truth.unwrap_or(0),
    };
    builder.counts.leave_out(
        "annotations of tasks that have several (choose with `--annotations`)",
        annotations.len() - 1,
    );
    vec![annotations.swap_remove(at)]
}

/// Adds the spans of one result: one for each of its labels. Counts results of other kinds.
fn read_result<'s>(
    raw: &'s str,
    spans: &mut Vec<RawSpan>,
    lines: &mut Lines<'s>,
    builder: &mut DocumentsBuilder<'s>,
) {
    let result: Value = serde_json::from_str(raw).unwrap_or_default();
    let value = result.get("value").unwrap_or(&result);
    let labels = ["labels", "hypertextlabels"].iter().find_map(|key| value.get(key)?.as_array());
    let Some(labels) = labels else {
        return builder.counts.leave_out("results without labels, such as relations", 1);
    };
    add_span(value, labels, lines.place(raw), spans, builder);
}

/// Adds a span for each label of an object with `start`, `end` and perhaps `text`.
fn add_span(
    value: &Value,
    labels: &[Value],
    place: Place,
    spans: &mut Vec<RawSpan>,
    builder: &mut DocumentsBuilder<'_>,
) {
    // The documentation says that offsets are strings; exports have numbers.
    let offset = |key: &str| match value.get(key)? {
        Value::String(text) => text.parse().ok(),
        number => usize::try_from(number.as_u64()?).ok(),
    };
    let (Some(start), Some(end)) = (offset("start"), offset("end")) else {
        let message = "the span has no offsets `start` and `end`";
        let cure = "only plain text is supported: label it with the tag `Text`, not `HyperText` or `Paragraphs`";
        return builder.report(place, Fault::Record { message: message.into(), cure });
    };
    let surface = value.get("text").and_then(Value::as_str).map(str::to_owned);
    for label in labels {
        let entity_type = label.as_str().unwrap_or_default().to_owned();
        let surface = surface.clone();
        let span = RawSpan { start, end, entity_type, surface, place: place.clone() };
        let is_known = |other: &RawSpan| {
            (other.start, other.end, &other.entity_type) == (start, end, &span.entity_type)
        };
        if !spans.iter().any(is_known) {
            spans.push(span);
        }
    }
}

/// Reads a record of `JSON_MIN`: the text and a list of spans under the name of the label control.
fn read_flat<'s>(
    record: JsonRecord<'s>,
    options: &ReadOptions,
    lines: &mut Lines<'s>,
    builder: &mut DocumentsBuilder<'s>,
) {
    let Some(text) = record.get::<String>(&[TEXT]) else {
        return builder.report(record.place, wrong_value("text", "a string", CURE));
    };
    let is_span = |raw: &&str| raw.contains("\"labels\"");
    let list = record.fields.iter().find_map(|(key, raw)| {
        let items = items(raw)?;
        items.iter().any(is_span).then(|| (key.clone(), items))
    });
    let is_annotated = list.is_some() || record.find(&["annotation_id", "annotator"]).is_some();
    if !is_annotated && !options.keeps_unlabelled {
        return builder.counts.leave_out("tasks without an annotation", 1);
    }
    let (key, found) = list.unwrap_or_default();
    let mut spans = Vec::new();
    for raw in found {
        read_result(raw, &mut spans, lines, builder);
    }
    builder.add(RawDocument {
        text,
        spans,
        id: record.id(),
        metadata: record.metadata(&["id", TEXT, &key]),
        original: Some(record.raw.to_owned()),
        place: record.place,
        end: record.end,
        ..RawDocument::default()
    });
}

/// The names of the label control and of the text in the labelling configuration of a project.
struct Names {
    control: String,
    object: String,
    /// The key of the text in `data`.
    text: String,
}

impl Default for Names {
    fn default() -> Self {
        Self { control: "label".into(), object: TEXT.into(), text: TEXT.into() }
    }
}

impl Names {
    /// Finds the names that a task of the project uses, so that new tasks fit the same project.
    fn find(raw: &str) -> Option<Self> {
        let task: Value = serde_json::from_str(raw).ok()?;
        let annotations = task.get("annotations").or(task.get("completions"))?.as_array()?;
        let mut results = annotations.iter().filter_map(|one| one.get("result")?.as_array());
        let result = results
            .find_map(|results| results.iter().find(|one| one.get("from_name").is_some()))?;
        let data = task.get("data")?.as_object()?;
        let text = if data.contains_key(TEXT) {
            TEXT
        } else {
            data.iter().find(|(_, value)| value.is_string())?.0
        };
        let name = |key: &str| Some(result.get(key)?.as_str()?.to_owned());
        Some(Self { control: name("from_name")?, object: name("to_name")?, text: text.to_owned() })
    }
}

fn write_task(document: &Document, names: &Names, are_suggestions: bool) -> String {
    let offsets = OffsetMap::new(document.text(), OffsetUnit::CodePoint);
    let results = document.spans().iter().enumerate().map(|(at, span)| {
        json!({
            "id": format!("span{at}"),
            "from_name": names.control,
            "to_name": names.object,
            "type": "labels",
            "value": {
                "start": offsets.offset(span.range.start),
                "end": offsets.offset(span.range.end),
                "text": &document.text()[span.range.clone()],
                "labels": [&*span.entity_type],
            },
        })
    });
    let results: Vec<Value> = results.collect();
    let numeric = document.id().filter(|id| id.parse::<u64>().is_ok());
    let data = ObjectWriter::default().value(&names.text, document.text());
    // The id of a task is a number. Any other id is stored with the data.
    let data = match document.id() {
        Some(id) if numeric.is_none() => data.value("id", id),
        _ => data,
    };
    let data = data.metadata(document.metadata(), &["id", &names.text]).finish();
    let task = ObjectWriter::default().id(numeric).raw("data", &data);
    let task = if are_suggestions {
        task.value("predictions", json!([{ "model_version": "melm", "result": results }]))
    } else {
        task.value("annotations", json!([{ "result": results }]))
    };
    task.finish()
}
