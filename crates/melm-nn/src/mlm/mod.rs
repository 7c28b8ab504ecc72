//! Masked language modelling: the encoder with its tied head, trained and asked.

mod allowed;
mod head;
mod load;
mod model;
mod predict;
mod scores;

pub(crate) use head::Head;

pub use allowed::{AllowedPieces, PieceSets};
pub(crate) use load::normal;
pub use model::{MaskedBatch, MaskedLm};
pub use predict::{Candidate, Predictions};
pub(crate) use scores::Output;

use crate::buffer::Buffer;
use crate::config::Config;
use crate::encoder::{EncoderTape, NormTape};

/// Table rows scored at a time: their part of the table stays in the second-level cache.
const BLOCK: usize = 64;
/// Tasks that sums over the vocabulary are cut into; fixed, so that the order of the sum is too.
const N_GROUPS: usize = 16;

/// Table rows of one task in sums over the vocabulary.
fn rows_per_group(vocab_size: usize) -> usize {
    vocab_size.div_ceil(BLOCK).div_ceil(N_GROUPS) * BLOCK
}

/// Working memory of a [`MaskedLm`]: what the forward pass keeps for the backward pass.
///
/// Buffers grow to the largest batch seen and are reused.
pub struct MaskedLmTape {
    /// The encoder's part, with the hidden states.
    pub encoder: EncoderTape,
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
}

/// Working memory of the head.
#[derive(Default)]
pub(crate) struct HeadTape {
    /// Masked rows of the encoder's output, and the dense layer over them before and after its gelu.
    gathered: Buffer,
    dense: Buffer,
    activated: Buffer,
    norm: NormTape,
    /// The normed rows as panels of columns, for the product with the table.
    panels: Buffer,
    /// Largest score and sum of exponentials of each block, `[blocks, stride]`.
    largest: Buffer,
    totals: Buffer,
    /// The logarithm of each masked row's sum of exponentials.
    pub(crate) log_totals: Buffer,
    /// Gradients of the normed rows: each group's share, then the sum.
    shares: Buffer,
    pub(crate) d: Buffer,
    d_gathered: Buffer,
    sums: crate::ops::ColumnSums,
    /// Each group's best candidates.
    groups: Buffer,
}
