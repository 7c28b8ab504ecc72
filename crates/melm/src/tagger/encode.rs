//! Sentences as the tagger's windows of pieces.

use std::ops::Range;

use super::Tagger;
use crate::Error;
use crate::windows::windows;

/// A window of a sentence: what the model reads, and which tokens it speaks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct View {
    /// The sentence, among those given.
    pub(super) sentence: usize,
    /// The tokens that count here.
    pub(super) own: Range<usize>,
    pub(super) pieces: Vec<u32>,
    /// Where in `pieces` each of the own tokens begins.
    pub(super) first_pieces: Vec<usize>,
}

/// How many sentences and tokens did not fit the model as they are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cuts {
    /// Sentences read in several overlapping windows.
    pub n_windowed: usize,
    /// Tokens of which only the first pieces are read, since they are longer than a quarter of the model.
    pub n_cut_tokens: usize,
    /// Sentences that could not be learned from: a mention, or mentions without a token between them, longer than the
    /// model.
    pub n_left_out: usize,
}

impl Tagger {
    /// The windows of a sentence, cut only where `may_cut` says, and whether it has to be left out for that.
    pub(super) fn views(
        &self,
        (sentence, tokens): (usize, &[impl AsRef<str>]),
        may_cut: impl Fn(usize) -> bool,
        cuts: &mut Cuts,
    ) -> Result<Vec<View>, Error> {
        let encoded = self.tokenizer.encode(tokens)?;
        let specials = self.tokenizer.specials();
        let limit = self.model.config().longest() - 2;
        let most = (limit / 4).max(1);
        // Only the first piece is scored, so a token beyond all bounds need not be read to its end.
        let pieces_of = |token: usize| {
            let range = &encoded.tokens[token];
            let all = &encoded.pieces[range.start as usize..range.end as usize];
            &all[..all.len().min(most)]
        };
        let lengths: Vec<_> = (0..tokens.len()).map(|token| pieces_of(token).len()).collect();
        let is_cut = |range: &Range<u32>| range.len() > most;
        cuts.n_cut_tokens += encoded.tokens.iter().filter(|range| is_cut(range)).count();
        let Some(windows) = windows(&lengths, limit, may_cut) else {
            cuts.n_left_out += 1;
            return Ok(Vec::new());
        };
        cuts.n_windowed += usize::from(windows.len() > 1);
        let views = windows.into_iter().map(|window| {
            let (mut pieces, mut first_pieces) = (vec![specials.bos], Vec::new());
            for token in window.tokens {
                if window.own.contains(&token) {
                    first_pieces.push(pieces.len());
                }
                pieces.extend_from_slice(pieces_of(token));
            }
            pieces.push(specials.eos);
            View { sentence, own: window.own, pieces, first_pieces }
        });
        Ok(views.collect())
    }
}
