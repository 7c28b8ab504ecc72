//! Tokens that repeat a token beside them or of another mention.

use std::ops::Range;

use melm_text::Sentence;

use super::GenerateSettings;
use crate::draft::is_repeat;
use crate::linearize::Linearized;
use crate::mask::Masked;
use crate::pieces::Tokenizer;

/// A token that is being filled, and the tokens that it may not repeat. All are ranges of pieces of a window.
pub(super) struct RepeatCheck {
    own: Range<usize>,
    others: Vec<Range<usize>>,
}

impl RepeatCheck {
    /// Returns true if the token has the same text as one of the others. A token that is still masked is not compared: it
    /// is compared with this token when it is filled itself.
    pub(super) fn finds_repeat(&self, pieces: &[u32], tokenizer: &Tokenizer) -> bool {
        let mask = tokenizer.specials().mask;
        let own = tokenizer.decode(&pieces[self.own.clone()]);
        let is_filled = |range: &&Range<usize>| !pieces[(*range).clone()].contains(&mask);
        let text = |range: &Range<usize>| tokenizer.decode(&pieces[range.clone()]);
        self.others.iter().filter(is_filled).any(|range| is_repeat(&own, &text(range)))
    }
}

/// Returns a check for each masked position of a window. Only the last masked position of a token has one, because the
/// text of the token is not known before. Tokens that the source already repeats are left out. Returns nothing if the
/// settings allow all repeats.
pub(super) fn repeat_checks(
    sentence: &Sentence,
    window: &Linearized,
    masked: &Masked,
    settings: &GenerateSettings,
) -> Vec<Option<RepeatCheck>> {
    if !settings.avoid_repeats && !settings.distinct_mentions {
        return Vec::new();
    }
    let token = |at: usize| sentence.tokens()[at].as_str();
    let range = |at: usize| window.piece_ranges[at - window.tokens.start].clone();
    let mentions: Vec<_> = sentence.mentions().map(|mention| mention.tokens).collect();
    let mut checks: Vec<_> = masked.positions.iter().map(|_| None).collect();
    for entity in &window.entities {
        let is_own = |position: &usize| entity.piece_range.contains(position);
        let Some(last) = masked.positions.iter().rposition(is_own) else { continue };
        let mut others = Vec::new();
        if settings.avoid_repeats {
            let beside = [entity.token.checked_sub(1), entity.token.checked_add(1)];
            others.extend(beside.into_iter().flatten());
        }
        if settings.distinct_mentions {
            let elsewhere = mentions.iter().enumerate().filter(|(at, _)| *at != entity.mention);
            others.extend(elsewhere.flat_map(|(_, tokens)| tokens.clone()));
        }
        let is_forbidden =
            |at: &usize| window.tokens.contains(at) && !is_repeat(token(*at), token(entity.token));
        checks[last] = Some(RepeatCheck {
            own: entity.piece_range.clone(),
            others: others.into_iter().filter(is_forbidden).map(range).collect(),
        });
    }
    checks
}
