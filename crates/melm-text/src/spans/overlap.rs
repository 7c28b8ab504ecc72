//! Chooses spans that do not overlap, because a token has only one tag.

use std::collections::BTreeMap;
use std::ops::Range;
use std::str::FromStr;

/// What happens to spans that overlap.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OverlapRule {
    /// The longest span is kept. Of equally long spans, the earlier one is kept, then the first in the file. The others
    /// are left out of the tags and counted.
    #[default]
    Longest,
    /// Overlapping spans are errors.
    Refuse,
}

impl FromStr for OverlapRule {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        match name {
            "longest" => Ok(Self::Longest),
            "refuse" => Ok(Self::Refuse),
            _ => Err("expected longest or refuse".into()),
        }
    }
}

/// The result of [`choose_longest`].
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Chosen {
    /// The indices of the kept ranges, ordered by their start.
    pub(crate) kept: Vec<usize>,
    /// Each range that was left out, with the kept range that it overlaps.
    pub(crate) left_out: Vec<LeftOutRange>,
}

/// A range that overlaps a longer one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct LeftOutRange {
    pub(crate) index: usize,
    pub(crate) longer: usize,
}

/// Keeps the longest of the ranges that overlap: see [`OverlapRule::Longest`].
pub(crate) fn choose_longest(ranges: &[Range<usize>]) -> Chosen {
    let mut order: Vec<usize> = (0..ranges.len()).collect();
    order.sort_by_key(|&at| (std::cmp::Reverse(ranges[at].len()), ranges[at].start));
    // The kept ranges by their start.
    let mut kept: BTreeMap<usize, usize> = BTreeMap::new();
    let mut left_out = Vec::new();
    for index in order {
        let range = &ranges[index];
        let before = kept.range(..range.end).next_back().map(|(_, &other)| other);
        match before.filter(|&other| ranges[other].end > range.start) {
            Some(longer) => left_out.push(LeftOutRange { index, longer }),
            None => {
                kept.insert(range.start, index);
            }
        }
    }
    Chosen { kept: kept.into_values().collect(), left_out }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_longest_is_kept_then_the_earliest_then_the_first() {
        let kept = |ranges: &[Range<usize>]| choose_longest(ranges).kept;
        assert_eq!(kept(&[0..3, 0..8, 4..8]), [1]);
        assert_eq!(kept(&[4..8, 2..6, 9..10]), [1, 2]);
        assert_eq!(kept(&[2..6, 2..6]), [0]);
        assert_eq!(kept(&[0..2, 2..4]), [0, 1]);
    }

    proptest! {
        #[test]
        fn what_is_kept_does_not_overlap_and_what_is_not_does(
            pairs in prop::collection::vec((0usize..30, 1usize..9), 0..12)
        ) {
            let ranges: Vec<_> = pairs.iter().map(|&(start, length)| start..start + length).collect();
            let chosen = choose_longest(&ranges);
            let overlap = |a: &Range<usize>, b: &Range<usize>| a.start < b.end && b.start < a.end;
            for pair in chosen.kept.windows(2) {
                prop_assert!(ranges[pair[0]].end <= ranges[pair[1]].start);
            }
            for one in &chosen.left_out {
                prop_assert!(overlap(&ranges[one.index], &ranges[one.longer]));
                prop_assert!(ranges[one.index].len() <= ranges[one.longer].len());
            }
            prop_assert_eq!(chosen.kept.len() + chosen.left_out.len(), ranges.len());
        }
    }
}
