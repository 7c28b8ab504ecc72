//! Reads the sentences of documents as records of tokens and tags.

use std::borrow::Cow;
use std::ops::Range;
use std::sync::Arc;

use super::document::Document;
use super::documents::Documents;
use crate::record::Record;
use crate::scheme::Scheme;
use crate::tag::EntityTypes;

/// Reads the sentences of all documents of a file, in order.
#[derive(Debug)]
pub struct DocumentReader {
    documents: Arc<Documents>,
    document: usize,
    sentence: usize,
    /// The byte of the text of the document up to which lines are counted.
    at: usize,
    /// The number of line feeds before this byte.
    n_lines: usize,
}

impl DocumentReader {
    /// Starts at the first document.
    pub(crate) fn new(documents: Arc<Documents>) -> Self {
        Self { documents, document: 0, sentence: 0, at: 0, n_lines: 0 }
    }

    /// The documents.
    pub fn documents(&self) -> &Documents {
        &self.documents
    }

    /// Reads the next sentence into `record`. Returns false after the last one. Adds new entity types to `types`.
    pub(crate) fn read(&mut self, record: &mut Record<'_>, types: &mut EntityTypes) -> bool {
        record.clear();
        loop {
            let Some(document) = self.documents.documents.get(self.document) else { return false };
            let Some(sentence) = document.sentences().get(self.sentence) else {
                self.document += 1;
                (self.sentence, self.at, self.n_lines) = (0, 0, 0);
                continue;
            };
            self.sentence += 1;
            fill(record, document, sentence, self.documents.scheme, types);
            if self.documents.format.has_text_files() {
                let start =
                    document.tokens().get(sentence.start).map_or(self.at, |token| token.start);
                let before = &document.text().as_bytes()[self.at..start];
                self.n_lines += memchr::memchr_iter(b'\n', before).count();
                self.at = start;
                record.line += self.n_lines;
                record.file = document.id().map(|id| format!("{id}.txt").into());
            }
            return true;
        }
    }

    /// The number of bytes of the file read so far.
    pub(crate) fn position(&self) -> usize {
        self.documents.documents.get(self.document).map_or(0, |document| document.end)
    }
}

/// Calls `on_sentence` with each sentence of `documents` and the entity types so far. Tags are written in `scheme`.
/// Stops at the first failure.
pub(crate) fn for_each_sentence<E>(
    documents: &[Document],
    scheme: Scheme,
    mut on_sentence: impl FnMut(&Record<'_>, &EntityTypes) -> Result<(), E>,
) -> Result<(), E> {
    let mut types = EntityTypes::default();
    let mut record = Record::default();
    for document in documents {
        for sentence in document.sentences() {
            record.clear();
            fill(&mut record, document, sentence, scheme, &mut types);
            on_sentence(&record, &types)?;
        }
    }
    Ok(())
}

/// Copies a sentence into an empty record.
fn fill(
    record: &mut Record<'_>,
    document: &Document,
    sentence: &Range<usize>,
    scheme: Scheme,
    types: &mut EntityTypes,
) {
    let owned = |text: &str| Cow::Owned(text.to_owned());
    record.line = document.line();
    record.tokens.extend(document.sentence_tokens(sentence).map(owned));
    record.gaps.extend(document.sentence_gaps(sentence).into_iter().map(Into::into));
    record.tags = document.sentence_tags(sentence, scheme, types);
    record.document_id = document.id().map(Into::into);
}
