//! Batches of sentences as rows, one after the other, without padding.

use crate::config::Config;
use crate::error::Error;
use std::ops::Range;

/// Sentences as pieces in one list; a row of every matrix is one piece.
///
/// ```
/// use melm_nn::packed::Packed;
/// let mut batch = Packed::default();
/// batch.push(&[0, 17, 2], 1);
/// batch.push(&[0, 2], 2);
/// assert_eq!((batch.n_rows(), batch.n_sentences()), (5, 2));
/// assert_eq!(batch.rows(1), 3..5);
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Packed {
    pieces: Vec<u32>,
    /// Where each sentence ends.
    ends: Vec<usize>,
    keys: Vec<u64>,
}

impl Packed {
    /// Forgets the sentences and keeps the memory.
    pub fn clear(&mut self) {
        self.pieces.clear();
        self.ends.clear();
        self.keys.clear();
    }

    /// Adds a sentence. Its `key` names it among all sentences: dropout depends on it, not on the place in the batch.
    pub fn push(&mut self, pieces: &[u32], key: u64) {
        self.pieces.extend_from_slice(pieces);
        self.ends.push(self.pieces.len());
        self.keys.push(key);
    }

    /// All pieces, one a row.
    pub fn pieces(&self) -> &[u32] {
        &self.pieces
    }

    /// How many rows there are.
    pub fn n_rows(&self) -> usize {
        self.pieces.len()
    }

    /// How many sentences there are.
    pub fn n_sentences(&self) -> usize {
        self.ends.len()
    }

    /// The rows of one sentence.
    pub fn rows(&self, sentence: usize) -> Range<usize> {
        let start = if sentence == 0 { 0 } else { self.ends[sentence - 1] };
        start..self.ends[sentence]
    }

    /// Some of the sentences.
    pub(crate) fn part(&self, sentences: Range<usize>) -> Self {
        let mut part = Self::default();
        for sentence in sentences {
            part.push(&self.pieces[self.rows(sentence)], self.key(sentence));
        }
        part
    }

    pub(crate) fn key(&self, sentence: usize) -> u64 {
        self.keys[sentence]
    }

    /// For every row in turn: its sentence's key and its position in the sentence.
    pub(crate) fn places(&self) -> impl Iterator<Item = (u64, usize)> {
        (0..self.n_sentences())
            .flat_map(move |s| (0..self.rows(s).len()).map(move |position| (self.key(s), position)))
    }

    /// Refuses what the model has no row for.
    pub(crate) fn check(&self, config: &Config) -> Result<(), Error> {
        if let Some(piece) = self.pieces.iter().find(|p| **p as usize >= config.vocab_size) {
            return Err(Error::PieceOutOfRange { piece: *piece, vocab_size: config.vocab_size });
        }
        let limit = config.max_pieces();
        for sentence in 0..self.n_sentences() {
            let n_pieces = self.rows(sentence).len();
            if n_pieces == 0 || n_pieces > limit {
                return Err(Error::SentenceLength { n_pieces, limit });
            }
        }
        Ok(())
    }
}
