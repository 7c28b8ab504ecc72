//! A linear-chain conditional random field: exact probabilities of whole sequences of tags.
//!
//! The score of a sequence is the sum of its emissions, of the transitions between neighbours, and of its start and end.
//! Its probability is the exponential of the score, divided by the sum over all sequences (Lafferty et al. 2001).
//! `Chain` holds the scores; transitions outside the [`AllowedTransitions`] score minus infinity. `Lattice` is the
//! working memory for one sentence. All sums are in `f64` and of logarithms, so that scores of ten thousand and sentences
//! of thousands of tokens stay finite.

mod allowed;
mod chain;
mod likelihood;
#[cfg(test)]
mod tests;
mod viterbi;

pub use allowed::AllowedTransitions;
pub(crate) use chain::{Chain, Lattice, Scores};
pub(crate) use likelihood::ChainGradient;
