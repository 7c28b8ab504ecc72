//! The documents of a file, and records before they are checked.

use std::collections::BTreeMap;
use std::ops::Range;

use super::document::{Document, Metadata};
use super::offsets::OffsetUnit;
use crate::formats::Format;
use crate::scheme::Scheme;

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
    /// Tokens that nobody has annotated. They are read as tokens outside of mentions.
    pub n_unannotated: usize,
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
        note(
            self.n_unannotated,
            "× a token without annotation is read as a token outside of mentions",
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
