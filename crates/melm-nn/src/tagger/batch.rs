//! Batches of sentences, with the position of the first piece of every token.

use super::TaggerSettings;
use crate::error::Error;
use crate::packed::Packed;
use std::ops::Range;

/// A batch of sentences for training or tagging.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TaggedBatch {
    sentences: Packed,
    /// The row of the first piece of each token, for all sentences one after the other.
    rows: Vec<usize>,
    /// For each sentence, the index after its last token.
    ends: Vec<usize>,
    tags: Vec<u32>,
}

impl TaggedBatch {
    /// Removes the sentences. The allocated memory is reused.
    pub fn clear(&mut self) {
        self.sentences.clear();
        self.rows.clear();
        self.ends.clear();
        self.tags.clear();
    }

    /// Adds a sentence: its key as in [`Packed::push`], its pieces, the position of the first piece of each token, and
    /// the tag of each token. For prediction, `tags` is empty.
    ///
    /// Tokens that should not count may be left out, such as tokens that an overlapping window repeats. A CRF treats
    /// the remaining tokens as neighbours.
    pub fn push(&mut self, key: u64, pieces: &[u32], first_pieces: &[usize], tags: &[u32]) {
        let start = self.sentences.n_rows();
        self.sentences.push(pieces, key);
        self.rows.extend(first_pieces.iter().map(|position| start + position));
        self.ends.push(self.rows.len());
        self.tags.extend_from_slice(tags);
    }

    /// Returns the sentences.
    pub fn sentences(&self) -> &Packed {
        &self.sentences
    }

    /// Returns the number of tokens.
    pub fn n_tokens(&self) -> usize {
        self.rows.len()
    }

    /// Returns the indices of the tokens of one sentence among all tokens of the batch.
    pub fn tokens(&self, sentence: usize) -> Range<usize> {
        let start = if sentence == 0 { 0 } else { self.ends[sentence - 1] };
        start..self.ends[sentence]
    }

    /// Splits the sentences into two batches.
    #[cfg(feature = "cuda")]
    pub(crate) fn halves(&self) -> [Self; 2] {
        let n = self.sentences.n_sentences();
        [0..n / 2, n / 2..n].map(|sentences| {
            let mut half = Self::default();
            for sentence in sentences {
                let (rows, tokens) = (self.sentences.rows(sentence), self.tokens(sentence));
                let firsts: Vec<_> =
                    self.rows[tokens.clone()].iter().map(|row| row - rows.start).collect();
                let tags = self.tags.get(tokens).unwrap_or_default();
                let pieces = &self.sentences.pieces()[rows];
                half.push(self.sentences.key(sentence), pieces, &firsts, tags);
            }
            half
        })
    }

    pub(crate) fn rows(&self) -> &[usize] {
        &self.rows
    }

    pub(crate) fn tags(&self) -> &[u32] {
        &self.tags
    }

    pub(super) fn check(&self, settings: &TaggerSettings, needs_tags: bool) -> Result<(), Error> {
        let fits = (0..self.ends.len()).all(|sentence| {
            let rows = self.sentences.rows(sentence);
            self.rows[self.tokens(sentence)].iter().all(|row| rows.contains(row))
        });
        if !fits || (needs_tags && self.tags.len() != self.rows.len()) {
            let (n_tokens, n_tags) = (self.rows.len(), self.tags.len());
            return Err(Error::TaggedTokens { n_tokens, n_tags, n_rows: self.sentences.n_rows() });
        }
        let n_tags = settings.n_tags;
        match self.tags.iter().find(|tag| **tag as usize >= n_tags) {
            Some(tag) => Err(Error::TagOutOfRange { tag: *tag, n_tags }),
            None => Ok(()),
        }
    }
}
