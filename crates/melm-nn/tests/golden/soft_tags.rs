//! Compares the loss of soft tags with the losses of the tag sequences that they are a mixture of.

use crate::cuda::{on_gpu, settings};
use crate::support::{Device, RELATIVE, assert_close};
use crate::tagger_invariants::{KINDS, allowed, batch, bench_with, config};
use crate::tiny::is_exactly_zero;
use melm_nn::Error;
use melm_nn::cuda::Precision;
use melm_nn::dropout::Dropout;
use melm_nn::tagger::{HeadKind, SoftTags, TaggedBatch};
use std::sync::Arc;

const N_TAGS: usize = 3;
const PIECES: [u32; 10] = [0, 11, 12, 40, 13, 50, 14, 15, 16, 2];
const FIRSTS: [usize; 4] = [1, 3, 4, 7];
/// Two allowed sequences that differ at the start, inside and at the end.
const SEQUENCES: [[u32; 4]; 2] = [[1, 2, 0, 0], [0, 1, 2, 1]];

/// Returns a batch of a sentence with these tags between two other sentences.
fn with_tags(tags: &[u32], soft: Option<SoftTags>) -> TaggedBatch {
    let mut all = batch(&[1]);
    all.push(40, &PIECES, &FIRSTS, tags);
    if let Some(soft) = soft {
        all.set_soft_tags(Arc::new(soft));
    }
    all.push(41, &[0, 20, 21, 2], &[1, 2], &[0, 1]);
    all
}

/// Returns the loss and the gradients of a batch, each with its name.
fn gradients(kind: HeadKind, device: Device, batch: &TaggedBatch) -> Vec<(String, Vec<f32>)> {
    let allowed = (kind == HeadKind::Crf).then(allowed);
    let mut bench = bench_with(&config(), kind, allowed, device);
    let loss = bench.accumulate(batch, 0.1, Dropout::new(&config(), 3, 17));
    let names = bench.names().into_iter().filter(|name| !is_exactly_zero(name));
    let mut all: Vec<_> = names.map(|name| (name.clone(), bench.gradient(&name))).collect();
    #[expect(clippy::cast_possible_truncation, reason = "the precision of the engine")]
    all.push(("loss".to_owned(), vec![loss as f32]));
    all
}

fn check_mixture(device: &dyn Fn() -> Device) {
    let each = SEQUENCES.map(|tags| SoftTags::from_tags(&tags, N_TAGS));
    let mixture = SoftTags::mean(&each.iter().collect::<Vec<_>>());
    for kind in KINDS {
        let found = gradients(kind, device(), &with_tags(&SEQUENCES[0], Some(mixture.clone())));
        let [first, second] =
            SEQUENCES.map(|tags| gradients(kind, Device::cpu(2), &with_tags(&tags, None)));
        for (((name, found), (_, one)), (_, other)) in found.iter().zip(&first).zip(&second) {
            let mean: Vec<_> = one.iter().zip(other).map(|(a, b)| (a + b) / 2.0).collect();
            assert_close(&format!("{kind:?} {name}"), found, &mean, RELATIVE);
        }
        // The two sequences have different gradients, so the mean differs from both.
        assert!(first.iter().zip(&second).any(|(one, other)| one.1 != other.1));
    }
}

#[test]
fn the_gradient_of_a_mixture_is_the_mean_of_the_gradients() {
    check_mixture(&|| Device::cpu(2));
}

#[test]
fn the_gradient_of_a_mixture_on_a_gpu_is_the_mean_of_the_gradients() {
    on_gpu(&settings(Precision::F32), check_mixture);
}

#[test]
fn soft_tags_of_the_wrong_size_and_forbidden_ones_are_refused() {
    let check = |device: &dyn Fn() -> Device| {
        let mut bench = bench_with(&config(), HeadKind::Crf, Some(allowed()), device());
        let wrong = with_tags(&SEQUENCES[0], Some(SoftTags::from_tags(&[0, 0], N_TAGS)));
        let result = bench.try_accumulate(&wrong, 0.1, Dropout::NONE);
        assert!(matches!(result, Err(Error::SoftTagSizes { sentence: 1, n_tags: N_TAGS })));
        // Tag 2 (I) may not start a sentence.
        let forbidden = SoftTags::from_tags(&[2, 0, 0, 0], N_TAGS);
        let forbidden = with_tags(&SEQUENCES[0], Some(forbidden));
        let result = bench.try_accumulate(&forbidden, 0.1, Dropout::NONE);
        assert!(matches!(result, Err(Error::ForbiddenSoftTags)));
    };
    check(&|| Device::cpu(2));
    on_gpu(&settings(Precision::F32), check);
}
