//! Decodes emissions: the best tags of a sentence, and their probabilities.

use super::{Tagger, Tagging};
use crate::crf::{Chain, Lattice};
use crate::error::Error;

/// Decodes the emissions of a tagger. It holds a copy of the scores of the CRF, so that many sentences can be decoded
/// without reading the parameters again. Each thread needs its own copy.
#[derive(Clone, Default)]
pub struct Decoder {
    pub(super) chain: Chain,
    pub(super) lattice: Lattice,
}

impl Tagger {
    /// Returns a decoder with the present scores of the CRF.
    ///
    /// # Errors
    /// Fails if the scores are on a GPU and cannot be read.
    pub fn decoder(&self) -> Result<Decoder, Error> {
        let mut decoder = Decoder::default();
        self.set_scores(&mut decoder)?;
        Ok(decoder)
    }
}

impl Decoder {
    /// Writes the most likely allowed tags of one sentence to `tags`. Returns their score.
    ///
    /// # Errors
    /// Fails if no sequence of tags is allowed.
    ///
    /// # Panics
    /// Panics if the length of `emissions` is not a multiple of the number of tags.
    pub fn best_tags(&mut self, emissions: &[f32], tags: &mut Vec<u32>) -> Result<f64, Error> {
        self.chain.best_sequence(emissions, &mut self.lattice, tags)
    }

    /// Finds the most likely allowed tags of one sentence, and the probability of every tag at every token.
    ///
    /// # Errors
    /// As [`Self::best_tags`].
    ///
    /// # Panics
    /// As [`Self::best_tags`].
    pub fn decode(&mut self, emissions: &[f32], out: &mut Tagging) -> Result<(), Error> {
        let score = self.best_tags(emissions, &mut out.tags)?;
        let (probabilities, total) = self.chain.marginals(emissions, &mut self.lattice)?;
        out.log_probability = score - total;
        out.probabilities.clear();
        #[expect(clippy::cast_possible_truncation, reason = "the precision of the engine")]
        out.probabilities.extend(probabilities.iter().map(|p| *p as f32));
        Ok(())
    }

    /// Returns the logarithm of the probability of `tags` for one sentence.
    ///
    /// # Errors
    /// As [`Self::best_tags`].
    ///
    /// # Panics
    /// Panics if the number of rows of `emissions` differs from the number of `tags`.
    pub fn log_probability(&mut self, emissions: &[f32], tags: &[u32]) -> Result<f64, Error> {
        self.chain.log_probability(emissions, tags, &mut self.lattice)
    }
}
