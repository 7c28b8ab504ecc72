//! How many tags a tagger can have, and what its transition scores cost.

use melm_nn::device::Device;
use melm_nn::tagger::{MAX_GPU_CRF_TAGS, MAX_TAGS};
use melm_text::{Corpus, count};

use super::{TagSet, TaggerHead};
use crate::Error;

/// Transition scores that take more memory get a warning, in bytes.
const MANY_BYTES: u64 = 256 << 20;
/// The bytes for each pair of tags with any head: `f64` scores to decode with, `f32` zeros, and whether the pair is allowed.
const BYTES_OF_DECODING: u64 = 13;
/// The bytes for each pair of tags of a CRF: parameter, gradient and two moments in `f32`, and the sum of gradients in `f64`.
const BYTES_OF_TRAINING: u64 = 24;
/// The bytes for each pair of tags and each token of a sentence that a CRF is trained on.
const BYTES_OF_TOKEN: u64 = 8;
/// The time for one pair of tags and one token in training on one core, in nanoseconds. 6.7 were measured with 801
/// tags.
const NANOSECONDS: f64 = 7.0;

/// Fails if there are more than [`MAX_TAGS`] tags.
pub(super) fn check_number(tags: &TagSet) -> Result<(), Error> {
    if tags.len() <= MAX_TAGS {
        return Ok(());
    }
    let (n_types, scheme) = (tags.types().iter().count(), tags.scheme());
    Err(Error::TooManyTags { n_types, n_tags: tags.len(), scheme, limit: MAX_TAGS })
}

/// Fails if a corpus has too many entity types for a tagger with this head on a device. Call it before other work, because
/// a run trains its judge late.
pub(crate) fn check_types(train: &Corpus, head: TaggerHead, device: &Device) -> Result<(), Error> {
    let tags = TagSet::from_corpus(train);
    check_number(&tags)?;
    match (device, head) {
        (Device::Cuda(_), TaggerHead::Crf) if tags.len() > MAX_GPU_CRF_TAGS => {
            Err(Error::TooManyGpuTags { n_tags: tags.len(), limit: MAX_GPU_CRF_TAGS })
        }
        _ => Ok(()),
    }
}

/// Returns the memory that the transition scores of a tagger take in training, in bytes.
pub(crate) fn transition_bytes(train: &Corpus, head: TaggerHead) -> u64 {
    let n_tags = TagSet::from_corpus(train).len() as u64;
    let longest = train.sentences().iter().map(|one| one.tokens().len()).max().unwrap_or(0);
    let per_pair = match head {
        TaggerHead::Linear => BYTES_OF_DECODING,
        TaggerHead::Crf => BYTES_OF_DECODING + BYTES_OF_TRAINING + BYTES_OF_TOKEN * longest as u64,
    };
    n_tags.saturating_mul(n_tags).saturating_mul(per_pair)
}

/// Returns a warning with an estimate of memory and time if a corpus has so many entity types that the transition scores of
/// its tagger are expensive.
pub(crate) fn transition_warning(train: &Corpus, head: TaggerHead) -> Option<String> {
    let tags = TagSet::from_corpus(train);
    let (n_types, n_tags) = (tags.types().iter().count(), tags.len());
    let n_pairs = (n_tags as u64).saturating_mul(n_tags as u64);
    let n_bytes = transition_bytes(train, head);
    if n_bytes < MANY_BYTES {
        return None;
    }
    let gib = n_bytes as f64 / f64::from(1 << 30);
    let types = count(n_types, "entity type");
    let start = format!("{types} make {n_tags} tags in {}: their transitions take", tags.scheme());
    Some(match head {
        TaggerHead::Linear => format!("{start} {gib:.1} GiB of memory"),
        TaggerHead::Crf => {
            let milliseconds = n_pairs as f64 * NANOSECONDS / 1e6;
            format!(
                "{start} about {gib:.1} GiB of memory and {milliseconds:.0} ms for each token of a training step on one core; \
                 set `tagger.head=linear` to train without them"
            )
        }
    })
}
