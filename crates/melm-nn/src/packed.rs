//! Batches of sentences. The rows of the sentences follow one another without padding.

use crate::error::Error;
use std::ops::Range;

/// The pieces of several sentences in one list. Each piece is one row of every matrix of a pass.
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
    /// The index after the last row of each sentence.
    ends: Vec<usize>,
    keys: Vec<u64>,
}

impl Packed {
    /// Removes all sentences. The allocated memory is reused.
    pub fn clear(&mut self) {
        self.pieces.clear();
        self.ends.clear();
        self.keys.clear();
    }

    /// Adds a sentence. `key` identifies the sentence among all sentences of the data: dropout depends on this key, not
    /// on the position in the batch.
    pub fn push(&mut self, pieces: &[u32], key: u64) {
        self.pieces.extend_from_slice(pieces);
        self.ends.push(self.pieces.len());
        self.keys.push(key);
    }

    /// Returns all pieces, one for each row.
    pub fn pieces(&self) -> &[u32] {
        &self.pieces
    }

    /// Returns the number of rows.
    pub fn n_rows(&self) -> usize {
        self.pieces.len()
    }

    /// Returns the number of sentences.
    pub fn n_sentences(&self) -> usize {
        self.ends.len()
    }

    /// Returns the rows of one sentence.
    ///
    /// # Panics
    /// If there is no such sentence.
    pub fn rows(&self, sentence: usize) -> Range<usize> {
        let start = if sentence == 0 { 0 } else { self.ends[sentence - 1] };
        start..self.ends[sentence]
    }

    /// Returns a new batch with a range of the sentences.
    #[cfg(feature = "cuda")]
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

    /// Returns, for each row, the key of its sentence and its position in the sentence.
    pub(crate) fn places(&self) -> impl Iterator<Item = (u64, usize)> {
        (0..self.n_sentences())
            .flat_map(move |s| (0..self.rows(s).len()).map(move |position| (self.key(s), position)))
    }

    /// Fails if a piece is outside the vocabulary, or if a sentence is empty or has more than `max_pieces` pieces.
    pub(crate) fn check(&self, vocab_size: usize, max_pieces: usize) -> Result<(), Error> {
        self.check_pieces(vocab_size)?;
        match self.lengths().find(|n_pieces| *n_pieces == 0 || *n_pieces > max_pieces) {
            Some(n_pieces) => Err(Error::SentenceLength { n_pieces, limit: max_pieces }),
            None => Ok(()),
        }
    }

    /// Fails if a piece is outside the vocabulary.
    pub(crate) fn check_pieces(&self, vocab_size: usize) -> Result<(), Error> {
        match self.pieces.iter().find(|piece| **piece as usize >= vocab_size) {
            Some(piece) => Err(Error::PieceOutOfRange { piece: *piece, vocab_size }),
            None => Ok(()),
        }
    }

    /// Returns the number of pieces of each sentence.
    pub(crate) fn lengths(&self) -> impl Iterator<Item = usize> {
        (0..self.n_sentences()).map(|sentence| self.rows(sentence).len())
    }
}
