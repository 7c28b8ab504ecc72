//! The scores of a linear chain, and the sum over all tag sequences (forward algorithm).

use super::AllowedTransitions;
use crate::error::Error;

/// The parameters of a CRF.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Scores<'a> {
    /// The score of each tag at the first token, `[tags]`.
    pub(crate) start: &'a [f32],
    /// The score of a transition from each tag (row) to each tag (column), `[tags, tags]`.
    pub(crate) transitions: &'a [f32],
    /// The score of each tag at the last token, `[tags]`.
    pub(crate) end: &'a [f32],
}

/// The scores of a linear chain in `f64`. Transitions that are not allowed have a score of minus infinity.
#[derive(Clone, Debug, Default)]
pub(crate) struct Chain {
    pub(super) n_tags: usize,
    pub(super) start: Vec<f64>,
    /// The transition scores `[to, from]`. They are transposed, so that the sum over all previous tags reads
    /// consecutive elements.
    pub(super) arrivals: Vec<f64>,
    pub(super) end: Vec<f64>,
}

/// Working memory for one sentence. It is reused for the next sentence.
#[derive(Clone, Debug, Default)]
pub(crate) struct Lattice {
    /// `[tokens, tags]`: the logarithm of the sum over all sequences up to this token that end in this tag.
    pub(super) prefixes: Vec<f64>,
    /// `[tokens, to, from]`: the probability that the previous tag is `from`, given the tag `to` at this token and the
    /// emissions up to this token.
    pub(super) origins: Vec<f64>,
    /// `[tokens, tags]`: the probability of each tag at each token.
    pub(super) marginals: Vec<f64>,
    /// `[tokens, tags]`: the best tag of the previous token, given this tag.
    pub(super) pointers: Vec<u32>,
}

impl Chain {
    /// Sets the scores. Reuses allocated memory.
    ///
    /// # Panics
    /// Panics if the scores and the allowed transitions have different numbers of tags.
    pub(crate) fn set(&mut self, scores: Scores<'_>, allowed: Option<&AllowedTransitions>) {
        let n = scores.start.len();
        assert_eq!(
            (scores.transitions.len(), scores.end.len()),
            (n * n, n),
            "expected scores of {n} tags"
        );
        assert!(
            allowed.is_none_or(|allowed| allowed.n_tags() == n),
            "expected allowed transitions of {n} tags"
        );
        let score = |score: f32, is_allowed: &dyn Fn(&AllowedTransitions) -> bool| match allowed {
            Some(allowed) if !is_allowed(allowed) => f64::NEG_INFINITY,
            _ => f64::from(score),
        };
        self.n_tags = n;
        self.start.clear();
        self.start.extend((0..n).map(|tag| score(scores.start[tag], &|a| a.starts(tag))));
        self.end.clear();
        self.end.extend((0..n).map(|tag| score(scores.end[tag], &|a| a.ends(tag))));
        self.arrivals.clear();
        self.arrivals.extend((0..n * n).map(|at| {
            let (to, from) = (at / n, at % n);
            score(scores.transitions[from * n + to], &|a| a.follows(from, to))
        }));
    }

    /// Returns the log-partition function: the logarithm of the sum of `exp(score)` over all allowed sequences. The
    /// shape of `emissions` is `[tokens, tags]`.
    ///
    /// # Errors
    /// Fails if no sequence is allowed.
    ///
    /// # Panics
    /// Panics if the length of `emissions` is not a multiple of the number of tags, or if the scores were not set.
    pub(crate) fn log_partition(
        &self,
        emissions: &[f32],
        lattice: &mut Lattice,
    ) -> Result<f64, Error> {
        let (n, n_tokens) = (self.n_tags, self.n_tokens(emissions));
        if n_tokens == 0 {
            return Ok(0.0);
        }
        lattice.prefixes.resize(n_tokens * n, 0.0);
        lattice.origins.resize(n_tokens * n * n, 0.0);
        lattice.marginals.resize(n_tokens * n, 0.0);
        self.begin(emissions, &mut lattice.prefixes[..n]);
        for token in 1..n_tokens {
            let (before, prefixes) = lattice.prefixes.split_at_mut(token * n);
            let before = &before[(token - 1) * n..];
            let origins = lattice.origins[token * n * n..].chunks_exact_mut(n);
            for ((tag, prefix), origins) in prefixes[..n].iter_mut().enumerate().zip(origins) {
                let arrivals = &self.arrivals[tag * n..(tag + 1) * n];
                let total = log_sum(before, arrivals, origins);
                *prefix = total + f64::from(emissions[token * n + tag]);
            }
        }
        let last = (n_tokens - 1) * n..n_tokens * n;
        let marginals = &mut lattice.marginals[last.clone()];
        let total = log_sum(&lattice.prefixes[last], &self.end, marginals);
        if total == f64::NEG_INFINITY {
            return Err(Error::NoTagSequence { n_tokens });
        }
        Ok(total)
    }

    /// Writes the scores of the first token: start score plus emission.
    pub(super) fn begin(&self, emissions: &[f32], prefixes: &mut [f64]) {
        for ((prefix, start), emission) in prefixes.iter_mut().zip(&self.start).zip(emissions) {
            *prefix = start + f64::from(*emission);
        }
    }

    /// Returns the number of tokens.
    ///
    /// # Panics
    /// Panics if the length of `emissions` is not a multiple of the number of tags, or if the scores were not set.
    pub(super) fn n_tokens(&self, emissions: &[f32]) -> usize {
        assert!(self.n_tags > 0, "the scores of the chain were not set");
        assert!(
            emissions.len().is_multiple_of(self.n_tags),
            "expected rows of {} tags",
            self.n_tags
        );
        emissions.len() / self.n_tags
    }
}

/// Returns `log sum exp(x + y)` and writes the share of each term in the sum to `shares`.
///
/// If every term is minus infinity, returns minus infinity and sets the shares to zero. Without this special case, the
/// shares would be NaN.
fn log_sum(x: &[f64], y: &[f64], shares: &mut [f64]) -> f64 {
    let largest = x.iter().zip(y).fold(f64::NEG_INFINITY, |most, (x, y)| most.max(x + y));
    if largest == f64::NEG_INFINITY {
        shares.fill(0.0);
        return largest;
    }
    let mut total = 0.0;
    for ((x, y), share) in x.iter().zip(y).zip(&mut *shares) {
        *share = (x + y - largest).exp();
        total += *share;
    }
    for share in shares {
        *share /= total;
    }
    largest + total.ln()
}
