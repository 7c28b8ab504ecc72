//! A step that has been made once takes no memory the second time.
#![expect(unsafe_code, reason = "an allocator that counts")]

use melm_nn::config::Config;
use melm_nn::device::Cpu;
use melm_nn::dropout::Dropout;
use melm_nn::encoder::Tape;
use melm_nn::gradients::Gradients;
use melm_nn::mlm::{HeadTape, MaskedBatch, MaskedLm, Predictions};
use melm_nn::optim::{Adam, AdamSettings};
use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering};

struct Counting;

static N_ALLOCATIONS: AtomicUsize = AtomicUsize::new(0);

// SAFETY: every call goes to the system's allocator unchanged.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        N_ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
        // SAFETY: the caller's promise, passed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the caller's promise, passed on.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;

#[test]
fn steps_and_predictions_after_the_first_allocate_nothing() {
    let config = Config {
        vocab_size: 301,
        hidden_size: 36,
        n_layers: 2,
        n_heads: 3,
        intermediate_size: 70,
        ..Config::default()
    };
    let mut batch = MaskedBatch::default();
    for key in 0..4 {
        batch.sentences.push(&[0, 5, 6, 7, 8, 9, 2], key);
    }
    batch.positions.extend([1, 3, 9, 22]);
    batch.originals.extend([15, 16, 17, 18]);
    let cpu = Cpu::new(2);
    let mut model = MaskedLm::random(&config, 1).unwrap();
    let (mut tape, mut head) = (Tape::for_training(&config), HeadTape::default());
    let mut gradients = Gradients::new(model.parameters());
    let settings = AdamSettings { max_norm: Some(1.0), ..AdamSettings::default() };
    let mut adam = Adam::new(model.parameters(), settings);
    let mut out = Predictions::default();
    let mut counts = [0; 3];
    for (step, count) in (0..).zip(&mut counts) {
        let before = N_ALLOCATIONS.load(Ordering::Relaxed);
        gradients.clear();
        for _ in 0..2 {
            let places = (&mut tape, &mut head, &mut gradients);
            let dropout = Dropout::new(&config, 1, step);
            model.accumulate(&cpu, (&batch, 0.1, dropout), places).unwrap();
        }
        adam.step(&cpu, 1e-3, (model.parameters_mut(), &mut gradients));
        model.predict(&cpu, (&batch, 5), (&mut tape, &mut head), &mut out).unwrap();
        *count = N_ALLOCATIONS.load(Ordering::Relaxed) - before;
    }
    assert!(counts[0] > 0, "the counter does not count");
    assert_eq!(counts[1..], [0, 0]);
}
