//! Cuts sentences into the windows of pieces that the tagger reads.

use std::ops::{AddAssign, Range};

use melm_text::count_of;

use super::TaggerModel;
use crate::Error;
use crate::windows::windows;

/// A window of a sentence: the pieces that the model reads, and the tokens whose tags are predicted from it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct WindowInput {
    /// The index of the sentence in the input.
    pub(super) sentence: usize,
    /// The tokens whose tags are predicted from this window. The other tokens are context.
    pub(super) own: Range<usize>,
    pub(super) pieces: Vec<u32>,
    /// The position in `pieces` of the first piece of each own token.
    pub(super) first_pieces: Vec<usize>,
}

/// The number of sentences and tokens that were too long for the model.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Truncation {
    /// The number of all sentences.
    pub n_sentences: usize,
    /// The number of all tokens.
    pub n_tokens: usize,
    /// The number of sentences read in several overlapping windows.
    pub n_windowed: usize,
    /// The number of tokens that take more than a quarter of the model's length. Only their first pieces were read.
    pub n_cut_tokens: usize,
    /// The number of training sentences that were left out because a mention, or a sequence of adjacent mentions, is
    /// longer than the model.
    pub n_left_out: usize,
}

impl Truncation {
    /// Returns a line for each count that is not 0.
    pub fn notes(&self) -> Vec<String> {
        let (sentences, tokens) = ((self.n_sentences, "sentence"), (self.n_tokens, "token"));
        let lines = [
            (
                self.n_windowed,
                sentences,
                "longer than the model's input: split into overlapping windows",
            ),
            (self.n_left_out, sentences, "left out: a mention is longer than the model's input"),
            (
                self.n_cut_tokens,
                tokens,
                "truncated: more pieces than a quarter of the model's input",
            ),
        ];
        let lines = lines.into_iter().filter(|(n, ..)| *n > 0);
        lines.map(|(n, (of, noun), what)| format!("{} {what}", count_of(n, of, noun))).collect()
    }
}

impl AddAssign for Truncation {
    fn add_assign(&mut self, other: Self) {
        self.n_sentences += other.n_sentences;
        self.n_tokens += other.n_tokens;
        self.n_windowed += other.n_windowed;
        self.n_cut_tokens += other.n_cut_tokens;
        self.n_left_out += other.n_left_out;
    }
}

impl TaggerModel {
    /// Cuts a sentence into windows. Cuts only before tokens for which `may_cut` returns true. Counts in `truncation`
    /// what did not fit. Returns no window if the sentence has to be left out.
    pub(super) fn windows(
        &self,
        sentence: usize,
        tokens: &[impl AsRef<str>],
        may_cut: impl Fn(usize) -> bool,
        truncation: &mut Truncation,
    ) -> Result<Vec<WindowInput>, Error> {
        truncation.n_sentences += 1;
        truncation.n_tokens += tokens.len();
        let encoded = self.tokenizer.encode(tokens)?;
        let specials = self.tokenizer.specials();
        let limit = self.model.config().max_pieces() - 2;
        let most = (limit / 4).max(1);
        // Only the first piece of a token is tagged, so that the last pieces of a very long token can be dropped.
        let pieces_of = |token: usize| {
            let range = &encoded.tokens[token];
            let all = &encoded.pieces[range.start as usize..range.end as usize];
            &all[..all.len().min(most)]
        };
        let lengths: Vec<_> = (0..tokens.len()).map(|token| pieces_of(token).len()).collect();
        let is_cut = |range: &Range<u32>| range.len() > most;
        truncation.n_cut_tokens += encoded.tokens.iter().filter(|range| is_cut(range)).count();
        let Some(windows) = windows(&lengths, limit, may_cut) else {
            truncation.n_left_out += 1;
            return Ok(Vec::new());
        };
        truncation.n_windowed += usize::from(windows.len() > 1);
        let inputs = windows.into_iter().map(|window| {
            let (mut pieces, mut first_pieces) = (vec![specials.bos], Vec::new());
            for token in window.tokens {
                if window.own.contains(&token) {
                    first_pieces.push(pieces.len());
                }
                pieces.extend_from_slice(pieces_of(token));
            }
            pieces.push(specials.eos);
            WindowInput { sentence, own: window.own, pieces, first_pieces }
        });
        Ok(inputs.collect())
    }
}
