//! The likelihood of tag sequences, the marginal probabilities of tags, and the gradient of the likelihood.

use super::{Chain, Lattice};
use crate::error::Error;

/// The gradient of the scores of a [`Chain`], summed over sentences.
#[derive(Clone, Debug, Default)]
pub(crate) struct ChainGradient {
    /// The gradient of the start scores, `[tags]`.
    pub(crate) start: Vec<f64>,
    /// The gradient of the transition scores `[tags, tags]`, from row to column as in [`super::Scores`].
    pub(crate) transitions: Vec<f64>,
    /// The gradient of the end scores, `[tags]`.
    pub(crate) end: Vec<f64>,
}

impl ChainGradient {
    /// Sets the gradient to zero for `n_tags` tags. Reuses allocated memory.
    pub(crate) fn clear(&mut self, n_tags: usize) {
        for (values, len) in [
            (&mut self.start, n_tags),
            (&mut self.transitions, n_tags * n_tags),
            (&mut self.end, n_tags),
        ] {
            values.clear();
            values.resize(len, 0.0);
        }
    }
}

impl Chain {
    /// Returns the score of one tag sequence, or minus infinity if it is not allowed.
    ///
    /// # Panics
    /// Panics if the number of rows of `emissions` is not the number of tags in `tags`, or if a tag is out of range.
    pub(crate) fn score(&self, emissions: &[f32], tags: &[u32]) -> f64 {
        let n = self.n_tags;
        assert_eq!(tags.len(), self.n_tokens(emissions), "expected one tag for each token");
        let (Some(first), Some(last)) = (tags.first(), tags.last()) else {
            return 0.0;
        };
        let emitted = tags
            .iter()
            .zip(emissions.chunks_exact(n))
            .map(|(tag, row)| f64::from(row[*tag as usize]));
        let moved =
            tags.windows(2).map(|pair| self.arrivals[pair[1] as usize * n + pair[0] as usize]);
        self.start[*first as usize]
            + emitted.sum::<f64>()
            + moved.sum::<f64>()
            + self.end[*last as usize]
    }

    /// Returns the logarithm of the probability of one tag sequence, or minus infinity if it is not allowed.
    ///
    /// # Errors
    /// Fails if no sequence is allowed.
    ///
    /// # Panics
    /// As [`Self::score`].
    pub(crate) fn log_probability(
        &self,
        emissions: &[f32],
        tags: &[u32],
        lattice: &mut Lattice,
    ) -> Result<f64, Error> {
        let score = self.score(emissions, tags);
        Ok(score - self.log_partition(emissions, lattice)?)
    }

    /// Returns the marginal probability of each tag at each token, `[tokens, tags]`, and the result of
    /// [`Self::log_partition`].
    ///
    /// # Errors
    /// Fails if no sequence is allowed.
    pub(crate) fn marginals<'a>(
        &self,
        emissions: &[f32],
        lattice: &'a mut Lattice,
    ) -> Result<(&'a [f64], f64), Error> {
        let total = self.log_partition(emissions, lattice)?;
        self.marginals_backward(self.n_tokens(emissions), lattice, |_, _, _| {});
        Ok((&lattice.marginals[..emissions.len()], total))
    }

    /// Computes the marginals of all tokens from those of the last token, going backwards: the probability of each tag
    /// is distributed over the possible previous tags. Calls `on_pair(from, to, probability)` for each transition.
    ///
    /// This is the derivative of the forward sum. It needs no backward sum and no difference of large logarithms.
    fn marginals_backward(
        &self,
        n_tokens: usize,
        lattice: &mut Lattice,
        mut on_pair: impl FnMut(usize, usize, f64),
    ) {
        let n = self.n_tags;
        for token in (1..n_tokens).rev() {
            let (before, own) = lattice.marginals.split_at_mut(token * n);
            let before = &mut before[(token - 1) * n..];
            before.fill(0.0);
            let origins = lattice.origins[token * n * n..].chunks_exact(n);
            for ((to, probability), origins) in own[..n].iter().enumerate().zip(origins) {
                for ((from, before), share) in before.iter_mut().enumerate().zip(origins) {
                    *before += probability * share;
                    on_pair(from, to, probability * share);
                }
            }
        }
    }

    /// Returns the negative log-likelihood of `tags`. Its gradient times `weight` is written to `d_emissions` for the
    /// emissions, and added to `gradient` for the scores of the chain.
    ///
    /// Transitions that are not allowed have probability zero and gradient zero.
    ///
    /// # Errors
    /// Fails if `tags` is not an allowed sequence, because its loss would be infinite.
    ///
    /// # Panics
    /// As [`Self::score`], or if `d_emissions` or `gradient` has the wrong size.
    pub(crate) fn accumulate(
        &self,
        emissions: &[f32],
        tags: &[u32],
        weight: f64,
        lattice: &mut Lattice,
        d_emissions: &mut [f32],
        gradient: &mut ChainGradient,
    ) -> Result<f64, Error> {
        let n = self.n_tags;
        assert_eq!(d_emissions.len(), emissions.len(), "expected one gradient for each emission");
        let score = self.score(emissions, tags);
        if score == f64::NEG_INFINITY {
            return Err(self.forbidden_tag(tags));
        }
        let loss = self.log_partition(emissions, lattice)? - score;
        if tags.is_empty() {
            return Ok(loss);
        }
        let transitions = &mut gradient.transitions[..n * n];
        self.marginals_backward(tags.len(), lattice, |from, to, probability| {
            transitions[from * n + to] += weight * probability;
        });
        for pair in tags.windows(2) {
            transitions[pair[0] as usize * n + pair[1] as usize] -= weight;
        }
        // The expected count of each tag minus its actual count: [tokens, tags].
        let errors = &mut lattice.marginals[..emissions.len()];
        for (row, tag) in errors.chunks_exact_mut(n).zip(tags) {
            row[*tag as usize] -= 1.0;
        }
        add_scaled(weight, &errors[..n], &mut gradient.start[..n]);
        add_scaled(weight, &errors[emissions.len() - n..], &mut gradient.end[..n]);
        for (out, error) in d_emissions.iter_mut().zip(errors) {
            #[expect(clippy::cast_possible_truncation, reason = "the precision of the engine")]
            let d = (weight * *error) as f32;
            *out = d;
        }
        Ok(loss)
    }

    /// Returns the error for the first tag of `tags` that is not allowed.
    fn forbidden_tag(&self, tags: &[u32]) -> Error {
        let is_forbidden = |score: f64| score == f64::NEG_INFINITY;
        let token = (0..tags.len()).find(|token| {
            let tag = tags[*token] as usize;
            match token.checked_sub(1) {
                None => is_forbidden(self.start[tag]),
                Some(before) => {
                    is_forbidden(self.arrivals[tag * self.n_tags + tags[before] as usize])
                }
            }
        });
        let token = token.unwrap_or(tags.len() - 1);
        Error::ForbiddenTag { token, tag: tags[token] }
    }
}

fn add_scaled(weight: f64, values: &[f64], out: &mut [f64]) {
    for (out, value) in out.iter_mut().zip(values) {
        *out += weight * value;
    }
}
