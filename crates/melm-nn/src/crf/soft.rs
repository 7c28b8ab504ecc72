//! Soft tags: the expected numbers of tags and of pairs of tags, under a distribution over tag sequences.

use super::{Chain, ChainGradient, Lattice};
use crate::error::Error;

/// A distribution over the tag sequences of one sentence, reduced to what the loss of a CRF depends on.
///
/// The loss of a tagger with these tags is the cross-entropy between the distribution and that of the tagger. Its
/// gradient needs only the expected numbers of tags and of pairs of neighbouring tags, not the distribution itself.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SoftTags {
    /// The probability of each tag at each token, `[tokens, tags]`.
    pub tags: Vec<f32>,
    /// The expected number of neighbours with these tags in the sentence, `[tags, tags]`, from row to column.
    pub pairs: Vec<f32>,
}

impl SoftTags {
    /// Returns the mean of several distributions. Each has the same share.
    ///
    /// # Panics
    /// Panics if there are none, or if they are not of the same sentence and tags.
    pub fn mean(all: &[&Self]) -> Self {
        let n = all.len() as f32;
        let mean_of = |select: fn(&Self) -> &Vec<f32>| -> Vec<f32> {
            let len = select(all[0]).len();
            assert!(all.iter().all(|one| select(one).len() == len), "expected the same sizes");
            (0..len).map(|at| all.iter().map(|one| select(one)[at]).sum::<f32>() / n).collect()
        };
        Self { tags: mean_of(|one| &one.tags), pairs: mean_of(|one| &one.pairs) }
    }

    /// Returns the soft tags of a single sequence, which has probability 1.
    ///
    /// # Panics
    /// Panics if a tag is not below `n_tags`.
    pub fn from_tags(tags: &[u32], n_tags: usize) -> Self {
        let mut soft =
            Self { tags: vec![0.0; tags.len() * n_tags], pairs: vec![0.0; n_tags * n_tags] };
        for (row, tag) in soft.tags.chunks_exact_mut(n_tags).zip(tags) {
            row[*tag as usize] = 1.0;
        }
        for pair in tags.windows(2) {
            soft.pairs[pair[0] as usize * n_tags + pair[1] as usize] += 1.0;
        }
        soft
    }

    /// Returns true if the sizes are those of a sentence of `n_tokens` tokens and `n_tags` tags.
    pub(crate) fn fits(&self, n_tokens: usize, n_tags: usize) -> bool {
        self.tags.len() == n_tokens * n_tags && self.pairs.len() == n_tags * n_tags
    }
}

impl Chain {
    /// Returns the soft tags of the chain's own distribution.
    ///
    /// # Errors
    /// Fails if no sequence is allowed.
    pub(crate) fn soft_tags(
        &self,
        emissions: &[f32],
        lattice: &mut Lattice,
    ) -> Result<SoftTags, Error> {
        let n = self.n_tags;
        let mut pairs = vec![0.0; n * n];
        self.log_partition(emissions, lattice)?;
        self.marginals_backward(self.n_tokens(emissions), lattice, |from, to, probability| {
            pairs[from * n + to] += probability;
        });
        let marginals = &lattice.marginals[..emissions.len()];
        #[expect(clippy::cast_possible_truncation, reason = "the precision of the engine")]
        let round = |values: &[f64]| values.iter().map(|value| *value as f32).collect();
        Ok(SoftTags { tags: round(marginals), pairs: round(&pairs) })
    }

    /// Returns the expected score of a sequence with these soft tags. Forbidden transitions with probability zero do not
    /// count.
    fn expected_score(&self, emissions: &[f32], soft: &SoftTags) -> f64 {
        let n = self.n_tags;
        let expected = |probability: f32, score: f64| match probability {
            0.0 => 0.0,
            probability => f64::from(probability) * score,
        };
        let sum = |probabilities: &[f32], scores: &[f64]| -> f64 {
            probabilities.iter().zip(scores).map(|(p, score)| expected(*p, *score)).sum()
        };
        let emitted: f64 =
            soft.tags.iter().zip(emissions).map(|(p, score)| expected(*p, f64::from(*score))).sum();
        let moved: f64 =
            (0..n * n).map(|at| expected(soft.pairs[at], self.arrivals[at % n * n + at / n])).sum();
        sum(&soft.tags[..n], &self.start)
            + emitted
            + moved
            + sum(&soft.tags[soft.tags.len() - n..], &self.end)
    }

    /// Returns the cross-entropy between the distribution of `soft` and that of the chain, without the entropy of
    /// `soft`, which does not depend on the chain. Its gradient times `weight` is written to `d_emissions` for the
    /// emissions, and added to `gradient` for the scores of the chain.
    ///
    /// # Errors
    /// Fails if `soft` gives a probability to a transition that is not allowed, because its loss would be infinite.
    ///
    /// # Panics
    /// Panics if the sizes of `soft`, `d_emissions` or `gradient` do not fit the emissions.
    pub(crate) fn accumulate_soft(
        &self,
        emissions: &[f32],
        soft: &SoftTags,
        weight: f64,
        lattice: &mut Lattice,
        d_emissions: &mut [f32],
        gradient: &mut ChainGradient,
    ) -> Result<f64, Error> {
        let (n, n_tokens) = (self.n_tags, self.n_tokens(emissions));
        assert!(soft.fits(n_tokens, n), "expected soft tags of {n_tokens} tokens and {n} tags");
        if n_tokens == 0 {
            return Ok(0.0);
        }
        let score = self.expected_score(emissions, soft);
        if score == f64::NEG_INFINITY {
            return Err(Error::ForbiddenSoftTags);
        }
        let loss = self.log_partition(emissions, lattice)? - score;
        let transitions = &mut gradient.transitions[..n * n];
        self.marginals_backward(n_tokens, lattice, |from, to, probability| {
            transitions[from * n + to] += weight * probability;
        });
        for (out, pair) in transitions.iter_mut().zip(&soft.pairs) {
            *out -= weight * f64::from(*pair);
        }
        for (expected, target) in lattice.marginals.iter_mut().zip(&soft.tags) {
            *expected -= f64::from(*target);
        }
        gradient.add_errors(weight, &lattice.marginals[..emissions.len()], d_emissions);
        Ok(loss)
    }
}
