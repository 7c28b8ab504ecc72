//! Sentences of pieces with the first piece of every token.

use super::TaggerSettings;
use crate::error::Error;
use crate::packed::Packed;
use std::ops::Range;

/// A batch of sentences to be tagged or to learn from.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TaggedBatch {
    sentences: Packed,
    /// The row of each token's first piece, sentence after sentence.
    rows: Vec<usize>,
    /// Where each sentence's tokens end.
    ends: Vec<usize>,
    tags: Vec<u32>,
}

impl TaggedBatch {
    /// Forgets the sentences and keeps the memory.
    pub fn clear(&mut self) {
        self.sentences.clear();
        self.rows.clear();
        self.ends.clear();
        self.tags.clear();
    }

    /// Adds a sentence: its pieces, where among them each token begins, and one tag a token, or none at all in a
    /// batch to be tagged. Its `key` names it as in [`Packed::push`].
    ///
    /// Tokens that shall not count, such as those a window repeats, are left out: a CRF sees the others as neighbours.
    pub fn push(&mut self, key: u64, pieces: &[u32], first_pieces: &[usize], tags: &[u32]) {
        let start = self.sentences.n_rows();
        self.sentences.push(pieces, key);
        self.rows.extend(first_pieces.iter().map(|position| start + position));
        self.ends.push(self.rows.len());
        self.tags.extend_from_slice(tags);
    }

    /// The sentences.
    pub fn sentences(&self) -> &Packed {
        &self.sentences
    }

    /// How many tokens there are.
    pub fn n_tokens(&self) -> usize {
        self.rows.len()
    }

    /// The tokens of one sentence, among all of the batch.
    pub fn tokens(&self, sentence: usize) -> Range<usize> {
        let start = if sentence == 0 { 0 } else { self.ends[sentence - 1] };
        start..self.ends[sentence]
    }

    /// The sentences in two parts.
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
