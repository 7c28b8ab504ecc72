//! Finds the best tag sequence (Viterbi algorithm).

use super::{Chain, Lattice};
use crate::error::Error;

impl Chain {
    /// Writes the best allowed sequence to `tags` and returns its score. If several sequences are equally good, the one
    /// with the lower tag at the last differing token is chosen.
    ///
    /// # Errors
    /// Fails if no sequence is allowed.
    ///
    /// # Panics
    /// Panics if the length of `emissions` is not a multiple of the number of tags, or if the scores were not set.
    pub(crate) fn best_sequence(
        &self,
        emissions: &[f32],
        lattice: &mut Lattice,
        tags: &mut Vec<u32>,
    ) -> Result<f64, Error> {
        let (n, n_tokens) = (self.n_tags, self.n_tokens(emissions));
        tags.clear();
        if n_tokens == 0 {
            return Ok(0.0);
        }
        lattice.prefixes.resize(n_tokens * n, 0.0);
        lattice.pointers.resize(n_tokens * n, 0);
        self.begin(emissions, &mut lattice.prefixes[..n]);
        for token in 1..n_tokens {
            let (before, prefixes) = lattice.prefixes.split_at_mut(token * n);
            let before = &before[(token - 1) * n..];
            for tag in 0..n {
                let (from, score) = largest(before, &self.arrivals[tag * n..(tag + 1) * n]);
                prefixes[tag] = score + f64::from(emissions[token * n + tag]);
                lattice.pointers[token * n + tag] = from;
            }
        }
        let (mut tag, score) =
            largest(&lattice.prefixes[(n_tokens - 1) * n..n_tokens * n], &self.end);
        if score == f64::NEG_INFINITY {
            return Err(Error::NoTagSequence { n_tokens });
        }
        tags.resize(n_tokens, tag);
        for token in (1..n_tokens).rev() {
            tag = lattice.pointers[token * n + tag as usize];
            tags[token - 1] = tag;
        }
        Ok(score)
    }
}

/// Returns the index and the value of the largest element of `x + y`. If several elements are equal, the first is
/// chosen.
fn largest(x: &[f64], y: &[f64]) -> (u32, f64) {
    let sums = (0..).zip(x.iter().zip(y).map(|(x, y)| x + y));
    sums.fold((0, f64::NEG_INFINITY), |best, next| if next.1 > best.1 { next } else { best })
}
