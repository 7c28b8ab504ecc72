//! A linear-chain conditional random field: exact probabilities of whole sequences of tags.
//!
//! The score of a sequence is the sum of its emissions, of the transitions between neighbours, and of its start and end.
//! Its probability is the exponential of the score, divided by the sum over all sequences (Lafferty et al. 2001).
//! [`Chain`] holds the scores; transitions outside the [`AllowedTransitions`] score minus infinity. [`Lattice`] is the
//! working memory for one sentence. All sums are in `f64` and of logarithms, so that scores of ten thousand and sentences
//! of thousands of tokens stay finite.
//!
//! ```
//! use melm_nn::crf::{Chain, Lattice, Scores};
//!
//! // Two tags. Repeating a tag scores 2, changing it scores 0.
//! let scores = Scores { start: &[0.0; 2], transitions: &[2.0, 0.0, 0.0, 2.0], end: &[0.0; 2] };
//! let (mut chain, mut lattice) = (Chain::default(), Lattice::default());
//! chain.set(scores, None);
//! let emissions = [3.0, 0.0, /* second token */ 0.0, 1.0];
//! let mut tags = Vec::new();
//! chain.best_sequence(&emissions, &mut lattice, &mut tags)?;
//! assert_eq!(tags, [0, 0]);
//! let log_probability = chain.log_probability(&emissions, &tags, &mut lattice)?;
//! let total = [3.0 + 2.0, 3.0 + 1.0, 0.0, 1.0 + 2.0_f64].map(f64::exp).iter().sum::<f64>();
//! assert!((log_probability - (5.0 - total.ln())).abs() < 1e-12);
//! # Ok::<(), melm_nn::Error>(())
//! ```

mod allowed;
mod chain;
mod likelihood;
#[cfg(test)]
mod tests;
mod viterbi;

pub use allowed::AllowedTransitions;
pub use chain::{Chain, Lattice, Scores};
pub use likelihood::ChainGradient;
