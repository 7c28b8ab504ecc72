//! Tokens that repeat the token beside them.

use std::ops::Range;

use melm_text::Sentence;

use crate::draft::is_repeat;
use crate::linearize::Linearized;
use crate::mask::Masked;
use crate::pieces::Tokenizer;

/// A token that is being filled, and the tokens beside it that it may not repeat. All are ranges of pieces of a window.
pub(super) struct RepeatCheck {
    own: Range<usize>,
    neighbours: Vec<Range<usize>>,
}

impl RepeatCheck {
    /// Returns true if the token has the same text as a token beside it. A neighbour that is still masked is not
    /// compared: it is compared with this token when it is filled itself.
    pub(super) fn finds_repeat(&self, pieces: &[u32], tokenizer: &Tokenizer) -> bool {
        let mask = tokenizer.specials().mask;
        let own = tokenizer.decode(&pieces[self.own.clone()]);
        let is_filled = |range: &&Range<usize>| !pieces[(*range).clone()].contains(&mask);
        let text = |range: &Range<usize>| tokenizer.decode(&pieces[range.clone()]);
        self.neighbours.iter().filter(is_filled).any(|range| is_repeat(&own, &text(range)))
    }
}

/// Returns a check for each masked position of a window. Only the last masked position of a token has one, because the
/// text of the token is not known before. Neighbours that the source already repeats are left out.
pub(super) fn repeat_checks(
    sentence: &Sentence,
    window: &Linearized,
    masked: &Masked,
) -> Vec<Option<RepeatCheck>> {
    let mut checks: Vec<_> = masked.positions.iter().map(|_| None).collect();
    for entity in &window.entities {
        let is_own = |position: &usize| entity.piece_range.contains(position);
        let Some(last) = masked.positions.iter().rposition(is_own) else { continue };
        let token = |at: usize| sentence.tokens()[at].as_str();
        let beside = [entity.token.checked_sub(1), entity.token.checked_add(1)];
        let beside = beside.into_iter().flatten().filter(|at| window.tokens.contains(at));
        let neighbours = beside.filter(|at| !is_repeat(token(*at), token(entity.token)));
        let range = |at: usize| window.piece_ranges[at - window.tokens.start].clone();
        checks[last] = Some(RepeatCheck {
            own: entity.piece_range.clone(),
            neighbours: neighbours.map(range).collect(),
        });
    }
    checks
}
