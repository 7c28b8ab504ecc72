//! The parts of models that GPU passes read. A build without the feature `cuda` uses these types too.

use crate::crf;
use crate::encoder::{Encoder, LinearParams};
use crate::mlm::{AllowedPieces, LmHead, MaskedBatch};
use crate::params::Parameters;
use crate::transform::HeadTransform;
use std::ops::Range;

/// The parts of a masked language model that a GPU pass reads.
#[cfg_attr(not(feature = "cuda"), expect(dead_code, reason = "no GPU reads it"))]
#[derive(Clone, Copy)]
pub(crate) struct MaskedLmView<'a> {
    pub(crate) parameters: &'a Parameters,
    pub(crate) encoder: &'a Encoder,
    pub(crate) head: &'a LmHead,
}

/// A batch, and what to predict at its masked positions.
#[cfg_attr(not(feature = "cuda"), expect(dead_code, reason = "no GPU reads it"))]
#[derive(Clone, Copy)]
pub(crate) struct MaskedQuery<'a> {
    pub(crate) batch: &'a MaskedBatch,
    /// The number of pieces to predict at each position.
    pub(crate) k: usize,
    /// The pieces that may be predicted; all pieces if `None`.
    pub(crate) allowed: Option<AllowedPieces<'a>>,
    /// True if the losses of the original pieces are also computed.
    pub(crate) needs_losses: bool,
}

/// The parts of a tagger that a GPU pass reads.
#[cfg_attr(not(feature = "cuda"), expect(dead_code, reason = "no GPU reads it"))]
#[derive(Clone, Copy)]
pub(crate) struct TaggerView<'a> {
    pub(crate) parameters: &'a Parameters,
    pub(crate) encoder: &'a Encoder,
    /// The dense layer and the norm before the classifier; `None` if the family has none.
    pub(crate) transform: Option<&'a HeadTransform>,
    pub(crate) classifier: &'a LinearParams,
    /// The start, transition and end scores of the CRF; `None` if the tagger has no CRF.
    pub(crate) chain: Option<&'a [Range<usize>; 3]>,
    pub(crate) allowed: Option<&'a crf::AllowedTransitions>,
    pub(crate) n_tags: usize,
}
