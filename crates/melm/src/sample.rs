//! Draws a small training set at random (section 3.1): N sentences of the full set.

use crate::random::Seed;

/// Draws `size` of `n` sentences, or all of them if `size` is above `n`. Returns their indices in ascending order.
///
/// Draws with the same seed are nested: a draw of 100 sentences is part of a draw of 200.
///
/// ```
/// use melm::{random::Seed, sample::draw};
/// let (small, large) = (draw(50, 5, Seed(1)), draw(50, 10, Seed(1)));
/// assert!(small.iter().all(|position| large.contains(position)));
/// ```
pub fn draw(n: usize, size: usize, seed: Seed) -> Vec<usize> {
    seed.stream("sample").generator().subset(n, size.min(n))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_draw_is_a_nested_subset(n in 0usize..300, size in 0usize..300, more in 0usize..50, seed: u64) {
            let drawn = draw(n, size, Seed(seed));
            prop_assert_eq!(drawn.len(), size.min(n));
            prop_assert!(drawn.windows(2).all(|pair| pair[0] < pair[1]));
            prop_assert!(drawn.iter().all(|&position| position < n));
            let larger = draw(n, size + more, Seed(seed));
            prop_assert!(drawn.iter().all(|position| larger.binary_search(position).is_ok()));
        }
    }

    #[test]
    fn every_sentence_is_drawn_equally_often() {
        let mut counts = [0_i32; 20];
        for seed in 0..20_000 {
            for position in draw(20, 5, Seed(seed)) {
                counts[position] += 1;
            }
        }
        // The tolerance is 5 standard deviations of a binomial count with mean 5,000.
        assert!(counts.iter().all(|n| (n - 5_000).abs() < 310), "{counts:?}");
    }
}
