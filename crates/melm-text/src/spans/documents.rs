//! The documents of a file: checked while they are read, and counted.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use super::document::{Document, Metadata, Original, Span};
use super::fault::{MismatchCause, SpanFault};
use super::offsets::{OffsetMap, OffsetUnit};
use super::overlap::{OverlapRule, choose_longest};
use crate::error::Error;
use crate::format::{ReadOptions, Structure};
use crate::formats::Format;
use crate::problem::{Fault, Problems};
use crate::scheme::Scheme;
use crate::source::Source;
use crate::tokenizer::{Tokenizer, TokenizerRules, is_separator};

/// The largest text of a document, in bytes. It bounds the memory and time that one record takes.
const MAX_TEXT: usize = 16 << 20;

/// All documents of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Documents {
    /// The format of the file.
    pub format: Format,
    /// The scheme in which readers write the tags.
    pub scheme: Scheme,
    /// The documents, in the order of the file.
    pub documents: Vec<Document>,
    /// The unit of the offsets of the file.
    pub unit: OffsetUnit,
    /// What was changed or left out while reading.
    pub counts: SpanCounts,
}

impl Documents {
    /// Returns a line for each count that a user should see. Warns if offsets may be wrong and nothing in the file shows
    /// whether they are.
    pub fn notes(&self) -> Vec<String> {
        let counts = &self.counts;
        let mut notes = counts.notes();
        let is_unsure =
            self.unit == OffsetUnit::Utf16 && counts.n_spans > 0 && counts.n_compared == 0;
        if is_unsure && counts.n_beyond_basic_plane > 0 {
            notes.push(format!(
                "warning: {} × a text with characters outside the basic plane, such as emoji; the offsets are read as {}, \
                 and the file states no text to compare with (`--offsets`)",
                counts.n_beyond_basic_plane, self.unit
            ));
        }
        notes
    }
}

/// What was changed or left out while documents were read.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SpanCounts {
    /// Spans in the file.
    pub n_spans: usize,
    /// Spans whose text the file states. It is the same as the offsets select.
    pub n_compared: usize,
    /// Tokens that a span cuts. Each was split.
    pub n_cut_tokens: usize,
    /// Spans that lost white space at their ends.
    pub n_trimmed: usize,
    /// Spans that overlap a longer one and are left out of the tags.
    pub n_overlapping: usize,
    /// Documents with characters outside the basic plane, where units of offsets differ.
    pub n_beyond_basic_plane: usize,
    /// Documents in a script without spaces, in which each character is a token.
    pub n_by_character: usize,
    /// Records and values that were left out, by reason.
    pub left_out: BTreeMap<&'static str, usize>,
}

impl SpanCounts {
    /// Counts something that is left out. `reason` is a plural noun such as `relations`.
    pub fn leave_out(&mut self, reason: &'static str, n: usize) {
        if n > 0 {
            *self.left_out.entry(reason).or_default() += n;
        }
    }

    /// Adds the counts of another file.
    pub(crate) fn add(&mut self, other: Self) {
        self.n_spans += other.n_spans;
        self.n_compared += other.n_compared;
        self.n_cut_tokens += other.n_cut_tokens;
        self.n_trimmed += other.n_trimmed;
        self.n_overlapping += other.n_overlapping;
        self.n_beyond_basic_plane += other.n_beyond_basic_plane;
        self.n_by_character += other.n_by_character;
        for (reason, n) in other.left_out {
            self.leave_out(reason, n);
        }
    }

    /// Returns a line for each count that a user should see.
    pub fn notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        let mut note = |n: usize, what: &str| {
            if n > 0 {
                notes.push(format!("{n} {what}"));
            }
        };
        note(self.n_cut_tokens, "× a span cuts a token; the token is split there");
        note(self.n_trimmed, "× white space at the ends of a span is left out of the mention");
        note(
            self.n_overlapping,
            "× a span overlaps a longer one and is left out of the tags (`--overlaps`)",
        );
        note(
            self.n_by_character,
            "× a text in a script without spaces; each of its characters is a token",
        );
        for (reason, &n) in &self.left_out {
            note(n, &format!("× left out: {reason}"));
        }
        notes
    }
}

/// Where a problem is reported: a line, from 1, and the bytes of the line.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Place {
    /// The line, from 1.
    pub line: usize,
    /// The bytes of the line.
    pub span: Range<usize>,
}

/// A span as a file states it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RawSpan {
    /// The first offset, in the unit of the file.
    pub start: usize,
    /// The offset after the span.
    pub end: usize,
    /// The entity type.
    pub entity_type: String,
    /// The text of the span, if the file states it. It is compared with the offsets.
    pub surface: Option<String>,
    /// Where problems of the span are reported.
    pub place: Place,
}

/// A record of a file, before it is checked.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RawDocument {
    /// The text.
    pub text: String,
    /// The spans.
    pub spans: Vec<RawSpan>,
    /// The bytes of the tokens, in order, if the file has tokens.
    pub tokens: Option<Vec<Range<usize>>>,
    /// The tokens of each sentence, in order, if the file has sentences. They need `tokens`.
    pub sentences: Option<Vec<Range<usize>>>,
    /// The id.
    pub id: Option<String>,
    /// The other values of the record.
    pub metadata: Vec<Metadata>,
    /// The record as the file spells it, if a writer of the same format can copy it.
    pub original: Option<String>,
    /// Where problems of the record are reported.
    pub place: Place,
    /// The byte of the file where the record ends, for progress.
    pub end: usize,
}

impl RawDocument {
    /// Makes a record of one sentence from tokens, joined by one space.
    pub fn from_tokens<T: AsRef<str>>(tokens: &[T]) -> Self {
        let mut text = String::new();
        let mut ranges = Vec::with_capacity(tokens.len());
        for (at, token) in tokens.iter().enumerate() {
            if at > 0 {
                text.push(' ');
            }
            let start = text.len();
            text.push_str(token.as_ref());
            ranges.push(start..text.len());
        }
        let sentences = Some(std::iter::once(0..ranges.len()).collect());
        Self { text, tokens: Some(ranges), sentences, ..Self::default() }
    }
}

/// Checks the records of a file and collects their documents.
#[derive(Debug)]
pub struct DocumentsBuilder<'s> {
    source: &'s Source,
    format: Format,
    unit: OffsetUnit,
    /// True if the offsets are counted in another unit than the format uses. Records can then not be copied.
    is_other_unit: bool,
    overlaps: OverlapRule,
    scheme: Scheme,
    tokenizer: Tokenizer,
    documents: Vec<Document>,
    problems: Problems,
    /// What was changed or left out. Readers add what they leave out themselves.
    pub counts: SpanCounts,
}

impl<'s> DocumentsBuilder<'s> {
    /// Starts with no documents. `unit` is the usual unit of offsets in `format`; `options` may set another one.
    pub fn new(
        source: &'s Source,
        format: Format,
        unit: OffsetUnit,
        options: &ReadOptions,
    ) -> Self {
        Self {
            source,
            format,
            unit: options.offset_unit.unwrap_or(unit),
            is_other_unit: options.offset_unit.is_some_and(|other| other != unit),
            overlaps: options.overlaps,
            scheme: options.scheme.unwrap_or(Scheme::Iob2),
            tokenizer: document_tokenizer(),
            documents: Vec::new(),
            problems: Problems::default(),
            counts: SpanCounts::default(),
        }
    }

    /// Starts with no documents. The spans of the records are ranges of bytes, because the file counts in tokens.
    pub fn for_tokens(source: &'s Source, format: Format, options: &ReadOptions) -> Self {
        let own = ReadOptions { offset_unit: None, ..options.clone() };
        Self::new(source, format, OffsetUnit::Byte, &own)
    }

    /// The unit of the offsets of the file.
    pub fn unit(&self) -> OffsetUnit {
        self.unit
    }

    /// Adds a problem.
    pub fn report(&mut self, place: Place, fault: impl Into<Fault>) {
        self.problems.push(place.line, place.span, fault);
    }

    /// Checks a record and adds its document. Problems are collected. A text without tokens is left out and counted.
    pub fn add(&mut self, raw: RawDocument) {
        if raw.text.len() > MAX_TEXT {
            return self.report(raw.place, SpanFault::LongText);
        }
        if raw.text.contains('\0') {
            let message = "the text contains a NUL character".into();
            let cure = "remove the character from the text";
            return self.report(raw.place, Fault::Record { message, cure });
        }
        let n_problems = self.problems.len();
        let offsets = OffsetMap::new(&raw.text, self.unit);
        let mut spans = Vec::with_capacity(raw.spans.len());
        for span in &raw.spans {
            self.counts.n_spans += 1;
            match self.check(&raw.text, &offsets, span) {
                Ok(span) => spans.push(span),
                Err(fault) => self.report(span.place.clone(), fault),
            }
        }
        if self.problems.len() > n_problems {
            return;
        }
        if self.overlaps == OverlapRule::Refuse {
            self.refuse_overlaps(&raw, &spans);
        }
        self.counts.n_beyond_basic_plane += usize::from(raw.text.chars().any(|c| c > '\u{ffff}'));
        let is_unspaced = raw.tokens.is_none() && Tokenizer::default().tokenize(&raw.text).is_err();
        self.counts.n_by_character += usize::from(is_unspaced);
        let original = raw.original.filter(|_| !self.is_other_unit);
        let original = original.map(|text| Original {
            format: self.format.name(),
            text: text.into(),
            is_current: true,
        });
        let mut document = Document {
            text: raw.text.into(),
            spans,
            id: raw.id.map(Into::into),
            metadata: raw.metadata,
            original,
            line: raw.place.line,
            end: raw.end,
            ..Document::default()
        };
        self.counts.n_overlapping += document.choose_flat();
        self.counts.n_cut_tokens += document.segment(&self.tokenizer, raw.tokens, raw.sentences);
        if document.tokens.is_empty() {
            return self.counts.leave_out("texts without a word", 1);
        }
        self.documents.push(document);
    }

    /// Converts the offsets of a span to bytes, and checks them and the type.
    fn check(&mut self, text: &str, offsets: &OffsetMap, span: &RawSpan) -> Result<Span, Fault> {
        let (start, end) = (span.start, span.end);
        if span.entity_type.is_empty() {
            return Err(SpanFault::NoType.into());
        }
        if let Err(fault) = crate::tag::check_type(&span.entity_type) {
            return Err(fault.into());
        }
        let fault = |fault: SpanFault| match &span.surface {
            // The stated text says more about the cause than an offset outside of the text.
            Some(stated) => {
                let cause = MismatchCause::find(text, stated, self.unit, start, end);
                match cause {
                    MismatchCause::Unit(_) | MismatchCause::LineEnds => SpanFault::Surface {
                        selected: String::new(),
                        stated: shorten(stated),
                        cause,
                    },
                    _ => fault,
                }
            }
            None => fault,
        };
        let to_byte = |offset| offsets.to_byte(offset).map_err(|found| fault(found.into()));
        let range = to_byte(start)?..to_byte(end)?;
        if range.is_empty() {
            return Err(SpanFault::Empty { start, end }.into());
        }
        let selected = &text[range.clone()];
        if let Some(stated) = span.surface.as_deref().filter(|&stated| !is_same(stated, selected)) {
            let cause = MismatchCause::find(text, stated, self.unit, start, end);
            let (selected, stated) = (shorten(selected), shorten(stated));
            return Err(SpanFault::Surface { selected, stated, cause }.into());
        }
        let trimmed = selected.trim_start_matches(is_separator);
        let from = range.end - trimmed.len();
        let trimmed = trimmed.trim_end_matches(is_separator);
        if trimmed.is_empty() {
            return Err(SpanFault::Blank.into());
        }
        self.counts.n_compared += usize::from(span.surface.is_some());
        self.counts.n_trimmed += usize::from(trimmed.len() < selected.len());
        let range = from..from + trimmed.len();
        Ok(Span { range, entity_type: span.entity_type.as_str().into() })
    }

    fn refuse_overlaps(&mut self, raw: &RawDocument, spans: &[Span]) {
        let ranges: Vec<_> = spans.iter().map(|span| span.range.clone()).collect();
        for one in choose_longest(&ranges).left_out {
            let text = |at: usize| shorten(&raw.text[ranges[at].clone()]);
            let fault = SpanFault::Overlap { text: text(one.index), other: text(one.longer) };
            self.report(raw.spans[one.index].place.clone(), fault);
        }
    }

    /// Returns the structure of the file. Fails with all problems if there are any. A file without documents has the
    /// problem [`Fault::NoSentences`].
    pub fn finish(mut self) -> Result<Structure, Error> {
        if self.documents.is_empty() && self.problems.is_empty() {
            self.report(Place { line: 1, span: 0..0 }, Fault::NoDocuments);
        }
        if !self.problems.is_empty() {
            return Err(Error::data(self.source.name(), self.source.text(), self.problems));
        }
        Ok(Structure::Documents(Arc::new(Documents {
            format: self.format,
            scheme: self.scheme,
            unit: self.unit,
            documents: self.documents,
            counts: self.counts,
        })))
    }
}

/// The tokenizer of documents without tokens: the default rules, and single characters in scripts without spaces.
pub(crate) fn document_tokenizer() -> Tokenizer {
    Tokenizer::new(TokenizerRules::default().with_single_characters())
}

/// Compares the stated text of a span with the text that its offsets select. Some tools write a line break as a space or
/// as the two characters `\n`.
fn is_same(stated: &str, selected: &str) -> bool {
    stated == selected
        || selected.contains(['\n', '\r']) && {
            let flat = |text: &str| text.replace("\\n", " ").replace(['\r', '\n', '\t'], " ");
            let words =
                |text: &str| flat(text).split_whitespace().map(str::to_owned).collect::<Vec<_>>();
            words(stated) == words(selected)
        }
}

/// Shortens a text for a message.
fn shorten(text: &str) -> String {
    const LONGEST: usize = 60;
    let shown: String = text.chars().take(LONGEST).flat_map(char::escape_debug).collect();
    if text.chars().count() > LONGEST { shown + "…" } else { shown }
}
