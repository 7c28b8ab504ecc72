//! How likely sequences and tags are, and the gradient of it.

use super::{Chain, Lattice};
use crate::error::Error;

/// The gradient of a [`Chain`]'s scores, summed over sentences.
#[derive(Clone, Debug, Default)]
pub struct ChainGradient {
    /// `[tags]`.
    pub start: Vec<f64>,
    /// `[tags, tags]`, from row to column as in [`super::Scores`].
    pub transitions: Vec<f64>,
    /// `[tags]`.
    pub end: Vec<f64>,
}

impl ChainGradient {
    /// Zeros for so many tags; memory is kept.
    pub fn clear(&mut self, n_tags: usize) {
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
    /// The score of one sequence; minus infinity if it is not allowed.
    ///
    /// # Panics
    /// If there is not one tag a row of `emissions`, or a tag is none of the chain's.
    pub fn score(&self, emissions: &[f32], tags: &[u32]) -> f64 {
        let n = self.n_tags;
        assert_eq!(tags.len(), self.n_tokens(emissions), "one tag a token");
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

    /// The logarithm of the probability of one sequence among all allowed ones; minus infinity if it is not allowed.
    ///
    /// # Panics
    /// As [`Self::score`].
    pub fn log_probability(
        &self,
        emissions: &[f32],
        tags: &[u32],
        lattice: &mut Lattice,
    ) -> Result<f64, Error> {
        let score = self.score(emissions, tags);
        Ok(score - self.log_partition(emissions, lattice)?)
    }

    /// The probability of each tag at each token, `[tokens, tags]`, and [`Self::log_partition`] on the way.
    pub fn marginals<'a>(
        &self,
        emissions: &[f32],
        lattice: &'a mut Lattice,
    ) -> Result<(&'a [f64], f64), Error> {
        let total = self.log_partition(emissions, lattice)?;
        self.walk_back(self.n_tokens(emissions), lattice, |_, _, _| {});
        Ok((&lattice.marginals[..emissions.len()], total))
    }

    /// From the last token's marginals to all others: a tag's probability is shared out among the tags before it, and
    /// `pair(from, to, probability)` is told each share.
    ///
    /// This is the forward sum differentiated, so it needs no second sum from the end, and no difference of large
    /// logarithms.
    fn walk_back(
        &self,
        n_tokens: usize,
        lattice: &mut Lattice,
        mut pair: impl FnMut(usize, usize, f64),
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
                    pair(from, to, probability * share);
                }
            }
        }
    }

    /// The negative log-likelihood of `tags`; `weight` times its gradient is written to `d_emissions` and added to
    /// `gradient`.
    ///
    /// What is not allowed has probability zero, and so has its gradient. Tags that are not allowed themselves are
    /// refused: their loss would be infinite.
    ///
    /// # Panics
    /// As [`Self::score`], or if `d_emissions` or `gradient` are of another size.
    pub fn accumulate(
        &self,
        emissions: &[f32],
        tags: &[u32],
        weight: f64,
        lattice: &mut Lattice,
        d_emissions: &mut [f32],
        gradient: &mut ChainGradient,
    ) -> Result<f64, Error> {
        let n = self.n_tags;
        assert_eq!(d_emissions.len(), emissions.len(), "one gradient an emission");
        let score = self.score(emissions, tags);
        if score == f64::NEG_INFINITY {
            return Err(self.forbidden(tags));
        }
        let loss = self.log_partition(emissions, lattice)? - score;
        if tags.is_empty() {
            return Ok(loss);
        }
        let transitions = &mut gradient.transitions[..n * n];
        self.walk_back(tags.len(), lattice, |from, to, probability| {
            transitions[from * n + to] += weight * probability;
        });
        for pair in tags.windows(2) {
            transitions[pair[0] as usize * n + pair[1] as usize] -= weight;
        }
        // What is expected less what is there: [tokens, tags].
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

    /// Where `tags` first do what is not allowed.
    fn forbidden(&self, tags: &[u32]) -> Error {
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
