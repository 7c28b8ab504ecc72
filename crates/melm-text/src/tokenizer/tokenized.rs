//! A text and the positions of its tokens.

use std::ops::Range;

use crate::spans::OffsetUnit;

/// A text with the byte range of each of its tokens. The text is the gaps and the tokens in turn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TokenizedText<'t> {
    text: &'t str,
    spans: Vec<Range<usize>>,
}

impl<'t> TokenizedText<'t> {
    /// `spans` are in order, do not overlap, and lie on character boundaries of `text`.
    pub(crate) fn new(text: &'t str, spans: Vec<Range<usize>>) -> Self {
        Self { text, spans }
    }

    /// The whole text.
    pub fn text(&self) -> &'t str {
        self.text
    }

    /// The byte range of each token, in order.
    pub fn spans(&self) -> &[Range<usize>] {
        &self.spans
    }

    /// Returns the range of each token, in order, counted in `unit`.
    ///
    /// ```
    /// use melm_text::{OffsetUnit, Tokenizer};
    /// let tokenizer = Tokenizer::default();
    /// let text = tokenizer.tokenize("😀 Köln").unwrap();
    /// assert_eq!(text.spans_in(OffsetUnit::Byte), [0..4, 5..10]);
    /// assert_eq!(text.spans_in(OffsetUnit::CodePoint), [0..1, 2..6]);
    /// assert_eq!(text.spans_in(OffsetUnit::Utf16), [0..2, 3..7]);
    /// ```
    pub fn spans_in(&self, unit: OffsetUnit) -> Vec<Range<usize>> {
        let mut offset = 0;
        let gaps_and_tokens = self.gaps().zip(self.tokens());
        let to_span = |(gap, token): (&str, &str)| {
            let start = offset + unit.measure(gap);
            offset = start + unit.measure(token);
            start..offset
        };
        gaps_and_tokens.map(to_span).collect()
    }

    /// The tokens, in order.
    pub fn tokens(&self) -> impl ExactSizeIterator<Item = &'t str> {
        let text = self.text;
        self.spans.iter().map(move |span| &text[span.clone()])
    }

    /// The texts before, between and after the tokens: one more than there are tokens. A gap between two tokens is
    /// empty if they are not separated.
    pub fn gaps(&self) -> impl Iterator<Item = &'t str> {
        let text = self.text;
        let starts = std::iter::once(0).chain(self.spans.iter().map(|span| span.end));
        let ends = self.spans.iter().map(|span| span.start).chain(std::iter::once(text.len()));
        starts.zip(ends).map(move |(start, end)| &text[start..end])
    }
}
