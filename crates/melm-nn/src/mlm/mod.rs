//! The masked language model, for training and prediction: the encoder, and a head whose output matrix is tied to the
//! piece table.

mod allowed;
mod head;
mod load;
mod model;
mod predict;
mod scores;

pub use allowed::{AllowedPieces, PieceSets};
pub(crate) use head::LmHead;
pub use model::{MaskedBatch, MaskedLm};
pub use predict::{Candidate, Predictions};
pub(crate) use scores::Output;

use crate::buffer::Buffer;
use crate::config::Config;
use crate::encoder::EncoderTape;
use crate::transform::TransformTape;

/// The number of table rows that are scored at a time. They stay in the second-level cache.
const BLOCK: usize = 64;
/// The number of tasks that a sum over the vocabulary is split into. It is fixed, so that the order of summation is
/// fixed too.
const N_GROUPS: usize = 16;

/// Returns the number of table rows of one task in a sum over the vocabulary.
fn rows_per_group(vocab_size: usize) -> usize {
    vocab_size.div_ceil(BLOCK).div_ceil(N_GROUPS) * BLOCK
}

/// Working memory of a [`MaskedLm`]: results of the forward pass that the backward pass needs.
///
/// Buffers grow to the largest batch so far and are reused.
pub struct MaskedLmTape {
    encoder: EncoderTape,
    head: HeadTape,
}

impl MaskedLmTape {
    /// Creates a tape that stores the results of every layer, for training and prediction.
    pub fn for_training(config: &Config) -> Self {
        Self { encoder: EncoderTape::for_training(config), head: HeadTape::default() }
    }

    /// Creates a tape that stores only what the next layer needs, for prediction only.
    pub fn for_prediction(config: &Config) -> Self {
        Self { encoder: EncoderTape::for_prediction(config), head: HeadTape::default() }
    }

    /// Returns the hidden states of the last forward pass on a CPU at the masked positions, `[positions, hidden]`.
    pub fn hidden(&self) -> &[f32] {
        self.encoder.hidden()
    }

    /// Returns the hidden states after `n_layers` layers and the norm that follows them; 0 means the embedding. Only a tape
    /// for training stores all of them. After the last layer these are only the masked positions.
    pub fn hidden_after(&self, n_layers: usize) -> &[f32] {
        self.encoder.hidden_after(n_layers)
    }
}

/// Working memory of the masked-LM head.
#[derive(Default)]
pub(crate) struct HeadTape {
    transform: TransformTape,
    /// The rows after the transform, packed into panels of columns for the product with the piece table.
    panels: Buffer,
    /// The largest score (`largest`) and the sum of exponentials (`totals`) of each block, `[blocks, stride]`.
    largest: Buffer,
    totals: Buffer,
    /// For each masked row, the logarithm of the sum of exponentials over all pieces.
    pub(crate) log_totals: Buffer,
    /// The gradients of the rows after the transform: `shares` is the contribution of each group of table rows, `d` is their
    /// sum.
    shares: Buffer,
    pub(crate) d: Buffer,
    /// The best candidates from each group of table rows.
    groups: Buffer,
}
