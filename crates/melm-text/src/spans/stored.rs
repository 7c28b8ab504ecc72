//! Documents as lines of JSON that contain everything, so that one process can write what another one has read.

use std::borrow::Cow;
use std::ops::Range;

use serde::{Deserialize, Serialize};

use super::document::{Document, Metadata, Original, Span};
use crate::formats::Format;

/// The JSON form of a document. A range is a pair of numbers.
#[derive(Serialize, Deserialize)]
struct StoredDocument<'a> {
    #[serde(borrow)]
    text: Cow<'a, str>,
    spans: Vec<(usize, usize, Cow<'a, str>)>,
    flat: Vec<usize>,
    tokens: Vec<(usize, usize)>,
    sentences: Vec<(usize, usize)>,
    id: Option<Cow<'a, str>>,
    /// The key and the JSON of each value.
    metadata: Vec<(Cow<'a, str>, Cow<'a, str>)>,
    original: Option<StoredOriginal<'a>>,
    line: usize,
    end: usize,
}

/// The JSON form of a record as its file spells it.
#[derive(Serialize, Deserialize)]
struct StoredOriginal<'a> {
    #[serde(borrow)]
    format: Cow<'a, str>,
    text: Cow<'a, str>,
    is_current: bool,
}

impl Document {
    /// Returns the document as one line of JSON, with everything that it contains, for [`Self::from_stored_line`]. It is
    /// not a file format: other versions may write other lines.
    pub fn to_stored_line(&self) -> String {
        let stored = StoredDocument {
            text: Cow::Borrowed(&self.text),
            spans: self
                .spans
                .iter()
                .map(|span| (span.range.start, span.range.end, Cow::Borrowed(&*span.entity_type)))
                .collect(),
            flat: self.flat.clone(),
            tokens: to_pairs(&self.tokens),
            sentences: to_pairs(&self.sentences),
            id: self.id.as_deref().map(Cow::Borrowed),
            metadata: self
                .metadata
                .iter()
                .map(|one| (Cow::Borrowed(&*one.key), Cow::Borrowed(&*one.json)))
                .collect(),
            original: self.original.as_ref().map(|original| StoredOriginal {
                format: Cow::Borrowed(original.format),
                text: Cow::Borrowed(&original.text),
                is_current: original.is_current,
            }),
            line: self.line,
            end: self.end,
        };
        serde_json::to_string(&stored).expect("a document has only JSON values")
    }

    /// Reads a line that [`Self::to_stored_line`] has written. Fails with a message if it is another line.
    pub fn from_stored_line(line: &str) -> Result<Self, String> {
        let stored: StoredDocument<'_> =
            serde_json::from_str(line).map_err(|error| error.to_string())?;
        let spans = stored.spans.into_iter().map(|(start, end, entity_type)| Span {
            range: start..end,
            entity_type: entity_type.into(),
        });
        let metadata = stored.metadata.into_iter();
        let metadata = metadata.map(|(key, json)| Metadata { key: key.into(), json: json.into() });
        let document = Self {
            text: stored.text.into(),
            spans: spans.collect(),
            flat: stored.flat,
            tokens: from_pairs(&stored.tokens),
            sentences: from_pairs(&stored.sentences),
            id: stored.id.map(Into::into),
            metadata: metadata.collect(),
            original: stored.original.map(StoredOriginal::restore).transpose()?,
            line: stored.line,
            end: stored.end,
        };
        document.has_valid_ranges().then_some(document).ok_or_else(|| "a range is invalid".into())
    }

    /// Returns true if the ranges of spans and tokens are inside the text, and those of sentences inside the tokens.
    fn has_valid_ranges(&self) -> bool {
        let is_text = |range: &Range<usize>| self.text.get(range.clone()).is_some();
        self.spans.iter().all(|span| is_text(&span.range))
            && self.tokens.iter().all(is_text)
            && self.sentences.iter().all(|range| self.tokens.get(range.clone()).is_some())
            && self.flat.iter().all(|at| *at < self.spans.len())
    }
}

impl StoredOriginal<'_> {
    fn restore(self) -> Result<Original, String> {
        let format: Format = self.format.parse()?;
        Ok(Original { format: format.name(), text: self.text.into(), is_current: self.is_current })
    }
}

fn to_pairs(ranges: &[Range<usize>]) -> Vec<(usize, usize)> {
    ranges.iter().map(|range| (range.start, range.end)).collect()
}

fn from_pairs(pairs: &[(usize, usize)]) -> Vec<Range<usize>> {
    pairs.iter().map(|&(start, end)| start..end).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ReadOptions, Source, Structure};

    #[test]
    fn a_stored_document_is_read_back_exactly() {
        let prodigy = concat!(
            "{\"text\":\"Ada saw \\\"Zürich\\\".\\nBob slept.\",\"spans\":[{\"start\":0,\"end\":3,\"label\":\"PER\"},",
            "{\"start\":9,\"end\":15,\"label\":\"LOC\"}],\"meta\":{\"source\":\"x\"},\"answer\":\"accept\"}\n"
        );
        let source = Source::from_text("a.jsonl", prodigy);
        let options = ReadOptions { format: "prodigy".parse().ok(), ..ReadOptions::default() };
        let structure = Structure::detect(&source, &options).unwrap();
        let documents = &structure.documents().unwrap().documents;
        assert_eq!(documents.len(), 1);
        assert!(!documents[0].metadata().is_empty() && documents[0].sentences().len() > 1);
        for document in documents {
            let line = document.to_stored_line();
            assert!(!line.contains('\n'));
            assert_eq!(Document::from_stored_line(&line).as_ref(), Ok(document));
        }
    }

    #[test]
    fn a_line_with_impossible_ranges_is_refused() {
        let line = |spans: &str, tokens: &str, sentences: &str| {
            format!(
                "{{\"text\":\"é\",\"spans\":{spans},\"flat\":[],\"tokens\":{tokens},\"sentences\":{sentences},\
                 \"id\":null,\"metadata\":[],\"original\":null,\"line\":1,\"end\":1}}"
            )
        };
        assert!(Document::from_stored_line(&line("[]", "[[0,2]]", "[[0,1]]")).is_ok());
        for (spans, tokens, sentences) in [
            ("[[0,1,\"X\"]]", "[]", "[]"),
            ("[]", "[[0,3]]", "[]"),
            ("[]", "[[2,0]]", "[]"),
            ("[]", "[[0,2]]", "[[0,2]]"),
        ] {
            assert!(Document::from_stored_line(&line(spans, tokens, sentences)).is_err());
        }
    }
}
