//! Overlapping windows for a sentence that is longer than the model.
//!
//! Each token is owned by exactly one window. The other tokens of a window are context. The caller determines where
//! windows may begin and end, so that neither the tokens that a window owns nor its context split a mention.

use std::ops::Range;

/// A range of tokens that the model reads at once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Window {
    /// All tokens of the window.
    pub(crate) tokens: Range<usize>,
    /// The tokens that this window owns. The other tokens are context and are owned by other windows.
    pub(crate) own: Range<usize>,
}

/// Splits tokens into windows of at most `limit` pieces. Returns `None` if a group of tokens that may not be
/// separated has more pieces.
///
/// Token `i` has `n_pieces[i]` pieces. `may_cut(i)` returns true if tokens `i - 1` and `i` may be separated. If all
/// tokens fit, there is one window. Otherwise all windows own about the same number of pieces, at most half the limit
/// where the allowed cuts permit this. A quarter of the limit on each side is then left for context.
pub(crate) fn windows(
    n_pieces: &[usize],
    limit: usize,
    may_cut: impl Fn(usize) -> bool,
) -> Option<Vec<Window>> {
    let blocks = Blocks::new(n_pieces, may_cut);
    let n = blocks.len();
    if blocks.size(0..n) <= limit {
        let all = 0..n_pieces.len();
        return Some(vec![Window { tokens: all.clone(), own: all }]);
    }
    if (0..n).any(|at| blocks.size(at..at + 1) > limit) {
        return None;
    }
    let own = blocks.shares(limit);
    Some(own.into_iter().map(|own| blocks.add_context(own, limit)).collect())
}

/// The tokens, grouped into blocks that may not be split. The methods take and return ranges of blocks.
struct Blocks {
    /// The index of the first token of each block, followed by the number of tokens.
    starts: Vec<usize>,
    /// For each entry of `starts`, the number of pieces before it.
    before: Vec<usize>,
}

impl Blocks {
    fn new(n_pieces: &[usize], may_cut: impl Fn(usize) -> bool) -> Self {
        let n_tokens = n_pieces.len();
        let mut blocks = Self { starts: Vec::new(), before: Vec::new() };
        let mut before = 0;
        for (token, n) in n_pieces.iter().enumerate() {
            if token == 0 || may_cut(token) {
                blocks.starts.push(token);
                blocks.before.push(before);
            }
            before += n;
        }
        blocks.starts.push(n_tokens);
        blocks.before.push(before);
        blocks
    }

    fn len(&self) -> usize {
        self.starts.len() - 1
    }

    /// Returns the number of pieces in a range of blocks.
    fn size(&self, range: Range<usize>) -> usize {
        self.before[range.end] - self.before[range.start]
    }

    /// Splits all blocks into ranges of about equal size. Each range (a share) fits the limit.
    fn shares(&self, limit: usize) -> Vec<Range<usize>> {
        let total = self.size(0..self.len());
        let n_shares = (2 * total).div_ceil(limit);
        let mut shares = Vec::with_capacity(n_shares);
        let mut start = 0;
        for end in 1..=self.len() {
            // The number of pieces before the end of this share if a cut were allowed everywhere.
            let border = (shares.len() + 1) * total / n_shares;
            let is_last = end == self.len();
            let is_nearest = !is_last
                && self.before[end + 1].abs_diff(border) >= self.before[end].abs_diff(border);
            if is_last || is_nearest || self.size(start..end + 1) > limit {
                shares.push(start..end);
                start = end;
            }
        }
        shares
    }

    /// Adds context around a share while it fits. Each block is added on the side that has less context so far.
    fn add_context(&self, own: Range<usize>, limit: usize) -> Window {
        let Range { mut start, mut end } = own.clone();
        loop {
            let grown = [start.checked_sub(1).map(|s| s..end), Some(start..end + 1)];
            let fits = |r: &Range<usize>| r.end <= self.len() && self.size(r.clone()) <= limit;
            let [left, right] = grown.map(|range| range.filter(fits));
            let left_is_shorter = self.size(start..own.start) <= self.size(own.end..end);
            let next = if left_is_shorter { left.or(right) } else { right.or(left) };
            match next {
                Some(range) => Range { start, end } = range,
                None => break,
            }
        }
        let tokens = |range: Range<usize>| self.starts[range.start]..self.starts[range.end];
        Window { tokens: tokens(start..end), own: tokens(own) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn tokens() -> impl Strategy<Value = (Vec<usize>, Vec<bool>)> {
        (0usize..60).prop_flat_map(|n| {
            let cuts = prop::collection::vec(prop::bool::weighted(0.7), n + 1);
            (prop::collection::vec(0usize..9, n), cuts)
        })
    }

    proptest! {
        #[test]
        fn windows_fit_and_each_token_is_owned_once(
            (n_pieces, cuts) in tokens(), limit in 1usize..80,
        ) {
            let size = |range: Range<usize>| n_pieces[range].iter().sum::<usize>();
            let n = n_pieces.len();
            let Some(found) = windows(&n_pieces, limit, |at| cuts[at]) else {
                let mut borders: Vec<_> = (1..n).filter(|at| cuts[*at]).collect();
                borders.insert(0, 0);
                borders.push(n);
                prop_assert!(borders.windows(2).any(|pair| size(pair[0]..pair[1]) > limit));
                return Ok(());
            };
            prop_assert_eq!(found.len() == 1, size(0..n) <= limit);
            let mut next = 0;
            for Window { tokens, own } in &found {
                prop_assert!(size(tokens.clone()) <= limit);
                prop_assert!(tokens.start <= own.start && own.end <= tokens.end);
                prop_assert_eq!(own.start, next);
                next = own.end;
                for at in [tokens.start, tokens.end, own.start, own.end] {
                    prop_assert!(at == 0 || at == n || cuts[at]);
                }
            }
            prop_assert_eq!(next, n);
        }

        #[test]
        fn each_side_has_a_quarter_of_context_if_cuts_are_allowed_everywhere(n in 200usize..900, limit in 16usize..150) {
            let found = windows(&vec![1; n], limit, |_| true).unwrap();
            for Window { tokens, own } in &found {
                prop_assert!(own.len() <= limit / 2 + 1);
                prop_assert!(tokens.start == 0 || own.start - tokens.start + 2 >= limit / 4);
                prop_assert!(tokens.end == n || tokens.end - own.end + 2 >= limit / 4);
            }
            let sizes = || found.iter().map(|window| window.own.len());
            prop_assert!(sizes().max().unwrap() - sizes().min().unwrap() <= 2);
        }
    }

    #[test]
    fn tokens_that_fit_are_one_window_and_others_overlap() {
        let all = windows(&[3, 2, 4], 9, |_| true).unwrap();
        assert_eq!(all, [Window { tokens: 0..3, own: 0..3 }]);
        let several = windows(&[1; 6], 4, |_| true).unwrap();
        assert_eq!(several[1], Window { tokens: 1..5, own: 2..4 });
        assert_eq!(windows(&[3, 2, 4], 8, |_| false), None);
    }

    #[test]
    fn a_mention_is_never_split() {
        let mention = 3..7;
        let found = windows(&[1; 10], 6, |at| at <= mention.start || at >= mention.end).unwrap();
        assert!(found.iter().all(|window| {
            let inside = |at: usize| mention.start < at && at < mention.end;
            !inside(window.tokens.start) && !inside(window.tokens.end)
        }));
        assert!(found.iter().any(|window| window.own.start <= 3 && 7 <= window.own.end));
    }
}
