//! Tags texts with spans: replaces the spans, and leaves everything else unchanged.

use melm_nn::device::Device;
use melm_text::Document;

use super::{TagSummary, TaggedSentence, Tagger, Truncation};
use crate::Error;
use crate::shard;
use crate::stage::{OnBatch, OnProgress};

/// The number of blocks of sentences that a GPU tags at a time. The work between two calls, such as starting threads, then
/// takes little of their time.
const GPU_BLOCKS: usize = 4;

impl Tagger {
    /// Returns the number of sentences that are tagged at a time.
    pub(super) fn chunk_size(&self) -> usize {
        match self.device() {
            Device::Cpu(_) => shard::BLOCK,
            Device::Cuda(_) => GPU_BLOCKS * shard::BLOCK,
        }
    }

    /// Returns the documents with the predicted mentions in place of their spans, and the numbers of sentences, tokens and
    /// mentions.
    ///
    /// `on_progress` receives the number of sentences tagged so far and their total. Fails with [`Error::Interrupted`] if
    /// `on_progress` asks to stop.
    pub fn tag_documents(
        &self,
        documents: &[Document],
        on_progress: OnProgress<'_>,
    ) -> Result<(Vec<Document>, TagSummary), Error> {
        let sentences: Vec<Vec<&str>> = documents
            .iter()
            .flat_map(|document| {
                let sentences = document.sentences().iter();
                sentences.map(|sentence| document.sentence_tokens(sentence).collect())
            })
            .collect();
        let find = |chunk: &[_], on_batch: OnBatch<'_>| self.find_tags_in_batches(chunk, on_batch);
        let (tags, truncation) = in_chunks(&sentences, self.chunk_size(), on_progress, find)?;
        let types = self.model().tags().types();
        let mut summary = TagSummary { truncation, ..TagSummary::default() };
        for tags in &tags {
            summary.add(tags, types);
        }
        let mut rest = &tags[..];
        let tagged = documents.iter().map(|document| {
            let (own, after) = rest.split_at(document.sentences().len());
            rest = after;
            document.with_tags(own, types)
        });
        Ok((tagged.collect(), summary))
    }

    /// Tags sentences given as tokens, some at a time. Returns the tags of each sentence with their probabilities, and the
    /// number of sentences and tokens that were too long for the model.
    ///
    /// `on_progress` receives the number of sentences tagged so far and their total. Fails with [`Error::Interrupted`] if
    /// `on_progress` asks to stop.
    pub fn tag_in_chunks<T: AsRef<str> + Sync>(
        &self,
        sentences: &[Vec<T>],
        on_progress: OnProgress<'_>,
    ) -> Result<(Vec<TaggedSentence>, Truncation), Error> {
        let tag = |chunk: &[_], on_batch: OnBatch<'_>| self.tag_batches(chunk, on_batch);
        in_chunks(sentences, self.chunk_size(), on_progress, tag)
    }
}

/// Calls `tag` with `n` sentences at a time. Returns all its results. `tag` calls its second argument after each batch,
/// so that `on_progress` can stop it within a chunk.
fn in_chunks<T, R>(
    sentences: &[Vec<T>],
    n: usize,
    on_progress: OnProgress<'_>,
    tag: impl Fn(&[Vec<T>], OnBatch<'_>) -> Result<(Vec<R>, Truncation), Error>,
) -> Result<(Vec<R>, Truncation), Error> {
    let mut truncation = Truncation::default();
    let mut all = Vec::with_capacity(sentences.len());
    for chunk in sentences.chunks(n) {
        let (done, total) = (all.len() as u64, sentences.len() as u64);
        let mut on_batch = || on_progress(done, total).or_interrupted();
        let (results, of_chunk) = tag(chunk, &mut on_batch)?;
        truncation += of_chunk;
        all.extend(results);
        on_progress(all.len() as u64, total).or_interrupted()?;
    }
    Ok((all, truncation))
}
