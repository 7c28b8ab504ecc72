//! Checks that training steps and predictions allocate memory only the first time.
#![expect(unsafe_code, reason = "an allocator that counts")]
#![expect(clippy::unwrap_used, reason = "a test")]

use melm_nn::config::{Config, ModelType};
use melm_nn::crf::AllowedTransitions;
use melm_nn::device::Device;
use melm_nn::dropout::Dropout;
use melm_nn::gradients::Gradients;
use melm_nn::mlm::{MaskedBatch, MaskedLm, MaskedLmTape, Predictions};
use melm_nn::optim::{Adam, AdamSettings};
use melm_nn::tagger::{HeadKind, TaggedBatch, Tagger, TaggerSettings, TaggerTape, Tagging};
use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering};

struct Counting;

static N_ALLOCATIONS: AtomicUsize = AtomicUsize::new(0);

// SAFETY: every call is forwarded unchanged to the system allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        N_ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
        // SAFETY: the caller fulfils the contract of `GlobalAlloc::alloc`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the caller fulfils the contract of `GlobalAlloc::dealloc`.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;

/// Runs `step` three times. Returns the number of allocations in each run.
fn counts_of(mut step: impl FnMut(u64)) -> [usize; 3] {
    [0, 1, 2].map(|index| {
        let before = N_ALLOCATIONS.load(Ordering::Relaxed);
        step(index);
        N_ALLOCATIONS.load(Ordering::Relaxed) - before
    })
}

fn config() -> Config {
    Config {
        vocab_size: 301,
        hidden_size: 36,
        n_layers: 2,
        n_heads: 3,
        intermediate_size: 70,
        ..Config::default()
    }
}

/// Returns a configuration with rotary positions, gates and a running sum as the residual.
fn modern_config() -> Config {
    Config { model_type: ModelType::ModernBert, inner_dropout: 0.1, ..config() }
}

const CLIPPED: AdamSettings =
    AdamSettings { beta1: 0.9, beta2: 0.999, eps: 1e-8, weight_decay: 0.0, max_norm: Some(1.0) };

fn masked_lm(config: &Config) -> [usize; 3] {
    let mut batch = MaskedBatch::default();
    for key in 0..4 {
        batch.sentences.push(&[0, 5, 6, 7, 8, 9, 2], key);
    }
    batch.positions.extend([1, 3, 9, 22]);
    batch.originals.extend([15, 16, 17, 18]);
    let device = Device::cpu(2);
    let mut model = MaskedLm::random(config, 1).unwrap();
    let mut tape = MaskedLmTape::for_training(config);
    let mut gradients = Gradients::new(model.parameters()).unwrap();
    let mut adam = Adam::new(model.parameters(), CLIPPED).unwrap();
    let mut out = Predictions::default();
    counts_of(|step| {
        gradients.clear();
        for _ in 0..2 {
            let dropout = Dropout::new(config, 1, step);
            model.accumulate(&device, &batch, 0.1, dropout, &mut tape, &mut gradients).unwrap();
        }
        adam.step(&device, 1e-3, model.parameters_mut(), &mut gradients).unwrap();
        model.predict(&device, &batch, 5, &mut tape, &mut out).unwrap();
    })
}

fn tagger(config: &Config, kind: HeadKind) -> [usize; 3] {
    let allowed = Some(AllowedTransitions::new(3, |from, to| from.is_some() || to != Some(2)));
    let mut model = Tagger::random(config, TaggerSettings { n_tags: 3, kind, allowed }, 1).unwrap();
    let mut batch = TaggedBatch::default();
    for key in 0..4 {
        batch.push(key, &[0, 5, 6, 7, 8, 9, 2], &[1, 2, 5], &[0, 1, 2]);
    }
    let device = Device::cpu(2);
    let mut tape = TaggerTape::for_training(config);
    let mut gradients = Gradients::new(model.parameters()).unwrap();
    let mut adam = Adam::new(model.parameters(), CLIPPED).unwrap();
    let (mut emissions, mut out) = (Vec::new(), Tagging::default());
    counts_of(|step| {
        gradients.clear();
        for _ in 0..2 {
            let dropout = Dropout::new(config, 1, step);
            model.accumulate(&device, &batch, 0.1, dropout, &mut tape, &mut gradients).unwrap();
        }
        adam.step(&device, 1e-3, model.parameters_mut(), &mut gradients).unwrap();
        model.emissions(&device, &batch, &mut tape, &mut emissions).unwrap();
        for sentence in emissions.chunks_exact(9) {
            model.decode(sentence, &mut tape, &mut out).unwrap();
        }
    })
}

// All cases are in one test, because tests run in parallel and share the counter.
#[test]
fn steps_and_predictions_after_the_first_allocate_nothing() {
    for config in [config(), modern_config()] {
        let taggers = [HeadKind::Linear, HeadKind::Crf].map(|kind| tagger(&config, kind));
        for counts in [masked_lm(&config), taggers[0], taggers[1]] {
            assert!(counts[0] > 0, "the counter does not count");
            assert_eq!(counts[1..], [0, 0]);
        }
    }
}
