//! Linear-chain conditional random field: the probability of a whole sequence of tags, exactly.
//!
//! A sequence scores the sum of its emissions, of the transitions between neighbours, and of its start and end; its
//! probability is the exponential of that over the sum for all sequences (Lafferty et al. 2001). [`Chain`] holds the
//! scores with what is not [`AllowedTransitions`] at minus infinity; a [`Lattice`] is the memory of one sentence. Everything is
//! summed in `f64` and in logarithms: scores of ten thousand and sentences of thousands of tokens stay finite.
//!
//! ```
//! use melm_nn::crf::{Chain, Lattice, Scores};
//!
//! // Two tags; staying is worth 2, changing nothing.
//! let scores = Scores { start: &[0.0; 2], transitions: &[2.0, 0.0, 0.0, 2.0], end: &[0.0; 2] };
//! let (mut chain, mut lattice) = (Chain::default(), Lattice::default());
//! chain.set(scores, None);
//! let emissions = [3.0, 0.0, /* second token */ 0.0, 1.0];
//! let mut tags = Vec::new();
//! chain.best(&emissions, &mut lattice, &mut tags)?;
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
