//! Checks the records of a file, and collects their documents.

use std::sync::Arc;

use super::document::{Document, Original, Span};
use super::documents::{Documents, Place, RawDocument, RawSpan, SpanCounts};
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
/// The number of problems whose cause is looked for. Each takes time proportional to the text.
const MAX_EXPLAINED: usize = 200;

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
        let Some(spans) = self.check_spans(&raw) else { return };
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
        if document.n_mentions() < document.flat.len() {
            // The span is `-DOCSTART-`, which cannot be a token.
            return self.report(raw.place, SpanFault::Blank);
        }
        if document.tokens.is_empty() {
            return self.counts.leave_out("texts without a word", 1);
        }
        self.documents.push(document);
    }

    /// Checks the spans of a record. Returns `None` and reports the problems if there are any.
    fn check_spans(&mut self, raw: &RawDocument) -> Option<Vec<Span>> {
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
        if self.problems.len() == n_problems && self.overlaps == OverlapRule::Refuse {
            self.refuse_overlaps(raw, &spans);
        }
        (self.problems.len() == n_problems).then_some(spans)
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
        let fault = |fault: SpanFault| self.explain(text, span, fault);
        let to_byte = |offset| offsets.to_byte(offset).map_err(|found| fault(found.into()));
        let range = to_byte(start)?..to_byte(end)?;
        if range.is_empty() {
            return Err(SpanFault::Empty { start, end }.into());
        }
        let selected = &text[range.clone()];
        if let Some(stated) = span.surface.as_deref().filter(|&stated| !is_same(stated, selected)) {
            let cause = self.find_cause(text, stated, span);
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

    /// Finds the likely cause of a mismatch. The cause of later ones is not looked for, because it takes time.
    fn find_cause(&self, text: &str, stated: &str, span: &RawSpan) -> MismatchCause {
        if self.problems.len() >= MAX_EXPLAINED {
            return MismatchCause::Unknown;
        }
        MismatchCause::find(text, stated, self.unit, span.start, span.end)
    }

    /// Replaces the fault of an offset by a more likely cause, if the file states the text of the span.
    fn explain(&self, text: &str, span: &RawSpan, fault: SpanFault) -> SpanFault {
        let Some(stated) = &span.surface else { return fault };
        let cause = self.find_cause(text, stated, span);
        match cause {
            MismatchCause::Unit(_) | MismatchCause::LineEnds => {
                SpanFault::Surface { selected: String::new(), stated: shorten(stated), cause }
            }
            _ => fault,
        }
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
