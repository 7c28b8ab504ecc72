//! BRAT standoff: a text `NAME.txt`, and `NAME.ann` with a line for each span.
//!
//! Offsets are code points, and the file states the text of each span, which is compared with the offsets. Characters
//! outside the basic plane shift the offsets of some versions (brat #1115): `--offsets utf16`. A span of several parts
//! becomes one from the start of the first to the end of the last. Relations, events and notes are counted and left out.

use super::{FileFormat, Format, Part, WriteSettings, WrittenFile};
use crate::conll::escape_byte_order_mark;
use crate::error::Error;
use crate::format::{ReadOptions, Structure};
use crate::problem::{Fault, Problems};
use crate::source::Source;
use crate::spans::{
    Document, DocumentsBuilder, OffsetMap, OffsetUnit, Place, RawDocument, RawSpan,
};

/// The format `brat`.
#[derive(Debug)]
pub(super) struct Brat;

const CURE: &str = "write `T1`, a tab, the type, the two offsets, a tab and the text of the span";

impl FileFormat for Brat {
    fn name(&self) -> &'static str {
        "brat"
    }

    fn extensions(&self) -> &'static [&'static str] {
        &["ann"]
    }

    fn written_extensions(&self) -> &'static [&'static str] {
        &["ann", "txt"]
    }

    fn holds(&self) -> &'static [Part] {
        &[Part::Text, Part::Documents, Part::Overlaps]
    }

    fn detect(&self, source: &Source) -> bool {
        !source.parts().is_empty()
    }

    fn read(&self, source: &Source, options: &ReadOptions) -> Result<Structure, Error> {
        let mut joined: Option<Structure> = None;
        let mut n_unpaired = source.n_unpaired();
        for pair in source.parts().chunks_exact(2) {
            // The files without a partner are counted once, with the first pair.
            let n_unpaired = std::mem::take(&mut n_unpaired);
            let structure = read_pair(&pair[0], &pair[1], n_unpaired, options)?;
            joined = Some(match joined {
                None => structure,
                Some(before) => before.with_documents(structure),
            });
        }
        joined.ok_or_else(|| {
            let mut problems = Problems::default();
            let message = "BRAT needs two files, `NAME.txt` and `NAME.ann`".into();
            let cure = "pass `NAME.ann` with `NAME.txt` beside it, or a folder with such files";
            problems.push(1, 0..0, Fault::Record { message, cure });
            Error::data(source.name(), source.text(), problems)
        })
    }

    fn write(&self, documents: &[Document], _: &WriteSettings) -> Result<Vec<WrittenFile>, Error> {
        let mut text = String::new();
        let mut lines = String::new();
        let mut n_spans = 0;
        let mut start = 0;
        for document in documents {
            let own = document.text();
            let offsets = OffsetMap::new(own, OffsetUnit::CodePoint);
            for span in document.spans() {
                n_spans += 1;
                let from = start + offsets.offset(span.range.start);
                let to = start + offsets.offset(span.range.end);
                let entity_type = &span.entity_type;
                if entity_type.contains(' ') {
                    let (entity_type, format) = (entity_type.to_string(), self.name());
                    return Err(Error::TypeWithSpace { entity_type, format });
                }
                // A line break would end the line.
                let surface = own[span.range.clone()].replace(['\n', '\r', '\t'], " ");
                lines.push_str(&format!("T{n_spans}\t{entity_type} {from} {to}\t{surface}\n"));
            }
            text.push_str(own);
            text.push_str(BETWEEN);
            start += own.chars().count() + BETWEEN.len();
        }
        let mut text = text.into_bytes();
        escape_byte_order_mark(&mut text);
        Ok(vec![
            WrittenFile { extension: "ann", bytes: lines.into_bytes() },
            WrittenFile { extension: "txt", bytes: text },
        ])
    }
}

/// The text between two documents that are written to one file. An empty line ends a sentence.
const BETWEEN: &str = "\n\n";

/// Reads a text and its annotations. `n_unpaired` files of the folder are counted as left out.
fn read_pair(
    text: &Source,
    annotations: &Source,
    n_unpaired: usize,
    options: &ReadOptions,
) -> Result<Structure, Error> {
    let mut builder =
        DocumentsBuilder::new(annotations, Format(&Brat), OffsetUnit::CodePoint, options);
    let reason = "files `NAME.txt` without `NAME.ann`, or `NAME.ann` without `NAME.txt`";
    builder.counts.leave_out(reason, n_unpaired);
    let mut spans = Vec::new();
    for (at, line) in annotations.text().split('\n').enumerate() {
        let line = line.strip_suffix('\r').unwrap_or(line);
        let place = Place { line: at + 1, span: 0..line.len() };
        if let Some(span) = read_line(line, place.clone(), &mut builder) {
            spans.push(RawSpan { place, ..span });
        }
    }
    let stem = text.name().rsplit(['/', '\\']).next().unwrap_or(text.name());
    builder.add(RawDocument {
        text: text.text().to_owned(),
        spans,
        id: Some(stem.strip_suffix(".txt").unwrap_or(stem).to_owned()),
        place: Place { line: 1, span: 0..0 },
        end: text.text().len(),
        ..RawDocument::default()
    });
    builder.finish()
}

/// Returns the span of a line of annotations. Reports lines that are not valid, and counts other annotations.
fn read_line(line: &str, place: Place, builder: &mut DocumentsBuilder<'_>) -> Option<RawSpan> {
    let message = match line.chars().next()? {
        'T' => match parse_span(line) {
            Some(found) => {
                let n_gaps = found.n_parts - 1;
                builder.counts.leave_out("gaps inside of spans of several parts", n_gaps);
                return Some(found.span);
            }
            None => "the line is not a span",
        },
        'R' | 'E' | '*' => {
            builder.counts.leave_out("relations and events", 1);
            return None;
        }
        'A' | 'M' | 'N' | '#' => {
            builder.counts.leave_out("attributes, normalizations and notes", 1);
            return None;
        }
        _ => "the line is not an annotation of BRAT",
    };
    builder.report(place, Fault::Record { message: message.into(), cure: CURE });
    None
}

/// A span and the number of its parts.
struct BratSpan {
    span: RawSpan,
    n_parts: usize,
}

/// Parses `T1 TAB type start end TAB text`. A span of several parts has several pairs of offsets, separated by `;`.
fn parse_span(line: &str) -> Option<BratSpan> {
    let mut columns = line.splitn(3, '\t');
    columns.next()?;
    let (entity_type, offsets) = columns.next()?.split_once(' ')?;
    let surface = columns.next().map(str::to_owned);
    let mut parts = Vec::new();
    for part in offsets.split(';') {
        let (start, end) = part.trim().split_once(' ')?;
        parts.push((start.parse::<usize>().ok()?, end.parse::<usize>().ok()?));
    }
    let start = parts.iter().map(|part| part.0).min()?;
    let end = parts.iter().map(|part| part.1).max()?;
    let entity_type = entity_type.to_owned();
    // The stated text of several parts leaves out what is between them.
    let surface = surface.filter(|_| parts.len() == 1);
    let span = RawSpan { start, end, entity_type, surface, ..RawSpan::default() };
    Some(BratSpan { span, n_parts: parts.len() })
}
