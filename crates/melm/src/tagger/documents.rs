//! Tags texts with spans: replaces the spans, and leaves everything else unchanged.

use melm_text::Document;

use super::{Tagger, Truncation};
use crate::Error;
use crate::stage::OnProgress;

/// The number of sentences that are tagged at a time.
const CHUNK: usize = 512;

impl Tagger {
    /// Returns the documents with the predicted mentions in place of their spans, and the number of sentences and tokens
    /// that were too long for the model.
    ///
    /// `on_progress` receives the number of sentences tagged so far and their total. Fails with [`Error::Interrupted`] if
    /// `on_progress` asks to stop.
    pub fn tag_documents(
        &self,
        documents: &[Document],
        on_progress: OnProgress<'_>,
    ) -> Result<(Vec<Document>, Truncation), Error> {
        let sentences: Vec<Vec<&str>> = documents
            .iter()
            .flat_map(|document| {
                let sentences = document.sentences().iter();
                sentences.map(|sentence| document.sentence_tokens(sentence).collect())
            })
            .collect();
        let mut truncation = Truncation::default();
        let mut tags = Vec::with_capacity(sentences.len());
        for chunk in sentences.chunks(CHUNK) {
            let (tagged, of_chunk) = self.tag_tokens(chunk)?;
            truncation.n_windowed += of_chunk.n_windowed;
            truncation.n_cut_tokens += of_chunk.n_cut_tokens;
            tags.extend(tagged.into_iter().map(|sentence| sentence.tags));
            on_progress(tags.len() as u64, sentences.len() as u64).or_interrupted()?;
        }
        let types = self.model().tags().types();
        let mut rest = &tags[..];
        let tagged = documents.iter().map(|document| {
            let (own, after) = rest.split_at(document.sentences().len());
            rest = after;
            document.with_tags(own, types)
        });
        Ok((tagged.collect(), truncation))
    }
}
