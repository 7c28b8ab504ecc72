//! The masked language model: the encoder with a head that is tied to the piece table, for training and prediction.

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
use crate::encoder::{EncoderTape, NormTape};

/// Table rows scored at a time. This part of the table stays in the second-level cache.
const BLOCK: usize = 64;
/// Tasks that a sum over the vocabulary is split into. Fixed, so that the order of summation is fixed too.
const N_GROUPS: usize = 16;

/// Table rows of one task in a sum over the vocabulary.
fn rows_per_group(vocab_size: usize) -> usize {
    vocab_size.div_ceil(BLOCK).div_ceil(N_GROUPS) * BLOCK
}

/// Working memory of a [`MaskedLm`]: what the forward pass keeps for the backward pass.
///
/// Buffers grow to the largest batch seen and are reused.
pub struct MaskedLmTape {
    encoder: EncoderTape,
    head: HeadTape,
}

impl MaskedLmTape {
    /// A tape that keeps every layer, for training and for prediction.
    pub fn for_training(config: &Config) -> Self {
        Self { encoder: EncoderTape::for_training(config), head: HeadTape::default() }
    }

    /// A tape that keeps only what the next layer needs, for prediction only.
    pub fn for_prediction(config: &Config) -> Self {
        Self { encoder: EncoderTape::for_prediction(config), head: HeadTape::default() }
    }

    /// The hidden states of the last forward pass on a CPU, `[rows, hidden]`.
    pub fn hidden(&self) -> &[f32] {
        self.encoder.hidden()
    }

    /// The hidden states after `n_layers` layers, 0 for the embedding. Only a tape for training has those of every layer.
    pub fn hidden_after(&self, n_layers: usize) -> &[f32] {
        self.encoder.hidden_after(n_layers)
    }
}

/// Working memory of the head.
#[derive(Default)]
pub(crate) struct HeadTape {
    /// The hidden states at the masked rows.
    gathered: Buffer,
    /// The output of the dense layer, before and after the gelu.
    dense: Buffer,
    activated: Buffer,
    norm: NormTape,
    /// The normed rows as panels of columns, for the product with the table.
    panels: Buffer,
    /// The largest score and the sum of exponentials of each block, `[blocks, stride]`.
    largest: Buffer,
    totals: Buffer,
    /// The logarithm of each masked row's sum of exponentials.
    pub(crate) log_totals: Buffer,
    /// Gradients of the normed rows: the share of each group, then the sum.
    shares: Buffer,
    pub(crate) d: Buffer,
    d_gathered: Buffer,
    sums: crate::ops::ColumnSums,
    /// The best candidates of each group.
    groups: Buffer,
}
