//! A linear-chain conditional random field (CRF): exact probabilities of whole tag sequences.
//!
//! The score of a sequence is the sum of its emissions, of the transition scores between neighbours, and of a start and
//! an end score. The probability of a sequence is the exponential of its score, divided by the sum over all sequences
//! (Lafferty et al. 2001). `Chain` contains the scores. Transitions outside the [`AllowedTransitions`] have a score of
//! minus infinity. `Lattice` is the working memory for one sentence. All sums are computed in `f64` and in the log
//! domain, so that scores of ten thousand and sentences of thousands of tokens stay finite.

mod allowed;
mod chain;
mod likelihood;
#[cfg(test)]
mod tests;
mod viterbi;

pub use allowed::AllowedTransitions;
pub(crate) use chain::{Chain, Lattice, Scores};
pub(crate) use likelihood::ChainGradient;
