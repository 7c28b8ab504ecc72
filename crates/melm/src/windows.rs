//! A sentence longer than the model, as overlapping windows that fit.
//!
//! Every token is some window's own exactly once, with context around it as far as there is room. Cuts are made only
//! where the caller allows them: between mentions, so that each is seen whole; and the same goes for context.

use std::ops::Range;

/// A stretch of tokens that the model sees at once, and which of them count here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Window {
    /// All tokens of the window.
    pub tokens: Range<usize>,
    /// Those that are this window's own; the others are context, and some other window's own.
    pub own: Range<usize>,
}

/// Cuts tokens into windows of at most `limit` pieces, or says `None` if a stretch without an allowed cut is longer.
///
/// Token `i` has `n_pieces[i]` pieces; `may_cut(i)` says whether tokens `i - 1` and `i` may be parted. All in one window
/// if it fits; otherwise windows own about equal shares, of half the limit or less where cuts allow it, which leaves a
/// quarter of the limit on each side for context.
///
/// ```
/// use melm::windows::{Window, windows};
/// let all = windows(&[3, 2, 4], 9, |_| true).unwrap();
/// assert_eq!(all, [Window { tokens: 0..3, own: 0..3 }]);
/// let cut = windows(&[1; 6], 4, |_| true).unwrap();
/// assert_eq!(cut[1], Window { tokens: 1..5, own: 2..4 });
/// assert_eq!(windows(&[3, 2, 4], 8, |_| false), None);
/// ```
pub fn windows(
    n_pieces: &[usize],
    limit: usize,
    may_cut: impl Fn(usize) -> bool,
) -> Option<Vec<Window>> {
    let stretches = Stretches::new(n_pieces, may_cut);
    let n = stretches.len();
    if stretches.size(0..n) <= limit {
        let all = 0..n_pieces.len();
        return Some(vec![Window { tokens: all.clone(), own: all }]);
    }
    if (0..n).any(|at| stretches.size(at..at + 1) > limit) {
        return None;
    }
    let own = stretches.shares(limit);
    Some(own.into_iter().map(|own| stretches.window(own, limit)).collect())
}

/// Tokens that may not be parted, taken together; ranges here count stretches.
struct Stretches {
    /// The first token of each, then the number of tokens.
    starts: Vec<usize>,
    /// Pieces before each of `starts`.
    before: Vec<usize>,
}

impl Stretches {
    fn new(n_pieces: &[usize], may_cut: impl Fn(usize) -> bool) -> Self {
        let n_tokens = n_pieces.len();
        let mut stretches = Self { starts: Vec::new(), before: Vec::new() };
        let mut before = 0;
        for (token, n) in n_pieces.iter().enumerate() {
            if token == 0 || may_cut(token) {
                stretches.starts.push(token);
                stretches.before.push(before);
            }
            before += n;
        }
        stretches.starts.push(n_tokens);
        stretches.before.push(before);
        stretches
    }

    fn len(&self) -> usize {
        self.starts.len() - 1
    }

    /// Pieces of a range of stretches.
    fn size(&self, range: Range<usize>) -> usize {
        self.before[range.end] - self.before[range.start]
    }

    /// Ranges of about equal size, each of which fits the limit.
    fn shares(&self, limit: usize) -> Vec<Range<usize>> {
        let total = self.size(0..self.len());
        let n_shares = (2 * total).div_ceil(limit);
        let mut shares = Vec::with_capacity(n_shares);
        let mut start = 0;
        for end in 1..=self.len() {
            // The border that this share should end at, were there a cut everywhere.
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

    /// A share with context around it: always on the side that has less so far, while there is room.
    fn window(&self, own: Range<usize>, limit: usize) -> Window {
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
        fn windows_fit_and_their_own_tokens_are_all_tokens_once(
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
        fn with_a_cut_everywhere_each_side_has_its_quarter(n in 200usize..900, limit in 16usize..150) {
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
    fn a_mention_moves_as_a_whole_into_one_window() {
        let mention = 3..7;
        let found = windows(&[1; 10], 6, |at| at <= mention.start || at >= mention.end).unwrap();
        assert!(found.iter().all(|window| {
            let inside = |at: usize| mention.start < at && at < mention.end;
            !inside(window.tokens.start) && !inside(window.tokens.end)
        }));
        assert!(found.iter().any(|window| window.own.start <= 3 && 7 <= window.own.end));
    }
}
