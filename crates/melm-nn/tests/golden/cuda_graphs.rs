//! Checks that CUDA graphs give the same bits as single kernel launches, for any sequence of batches.

use crate::cuda::{on_gpu, settings};
use crate::support::{Bench, Device};
use crate::tagger::TaggerBench;
use crate::tagger_invariants;
use melm_nn::config::{Config, GlobalLayers, ModelType, Rotary};
use melm_nn::cuda::{CudaSettings, GraphCounts, Precision};
use melm_nn::dropout::Dropout;
use melm_nn::mlm::{MaskedBatch, MaskedLm, MaskedLmTape, Predictions};
use melm_nn::optim::{Adam, AdamSettings};
use melm_nn::tagger::TaggerTape;

/// Returns a model with three layers. In predictions, the first and the last one use the same memory.
fn config() -> Config {
    Config {
        vocab_size: 200,
        hidden_size: 32,
        n_layers: 3,
        n_heads: 2,
        intermediate_size: 24,
        max_position_embeddings: 70,
        ..Config::default()
    }
}

/// Returns two or three sentences. Their lengths depend on `step`.
fn batch(step: u32) -> MaskedBatch {
    let mut batch = MaskedBatch::default();
    for key in 0..2 + step % 2 {
        let length = 18 + (step * 7 + key * 5) % 19;
        let pieces: Vec<_> = (0..length).map(|i| 2 + (i * i + step + key) % 190).collect();
        batch.sentences.push(&pieces, u64::from(key));
    }
    batch.positions.extend((0..5 + step as usize % 3).map(|at| 3 * at));
    batch.originals.extend(batch.positions.iter().map(|row| batch.sentences.pieces()[*row]));
    batch
}

fn counts(device: &Device) -> GraphCounts {
    match device {
        Device::Cuda(cuda) => cuda.graph_counts(),
        Device::Cpu(_) => unreachable!("a GPU test"),
    }
}

/// Trains with two micro-batches per step and predicts after each step. Returns the bits of all losses and predictions.
fn train_masked_lm(config: &Config, device: Device) -> (Vec<u64>, GraphCounts) {
    let mut bench = Bench::new(MaskedLm::random(config, 5).unwrap(), device);
    let settings = AdamSettings { max_norm: Some(0.5), ..AdamSettings::default() };
    let mut adam = Adam::new(bench.model.parameters(), settings).unwrap();
    let mut tape = MaskedLmTape::for_prediction(config);
    let mut bits = Vec::new();
    for step in 0..10 {
        bench.gradients.clear();
        for part in [step, step + 4] {
            let dropout = Dropout::new(config, 3, u64::from(step));
            bits.push(bench.accumulate(&batch(part), 0.1, dropout).to_bits());
        }
        adam.step(&bench.device, 1e-2, bench.model.parameters_mut(), &mut bench.gradients).unwrap();
        let mut out = Predictions::default();
        bench.model.predict(&bench.device, &batch(step), 3, &mut tape, &mut out).unwrap();
        let candidates = (0..out.n_rows()).flat_map(|row| out.row(row));
        bits.extend(
            candidates.map(|c| u64::from(c.log_probability.to_bits()) << 32 | u64::from(c.piece)),
        );
    }
    let counts = counts(&bench.device);
    (bits, counts)
}

/// Trains a tagger with a CRF in the same way as [`train_masked_lm`].
fn train_tagger(mut bench: TaggerBench) -> (Vec<u64>, GraphCounts) {
    let mut adam = Adam::new(bench.model.parameters(), AdamSettings::default()).unwrap();
    let config = bench.model.config().clone();
    let mut tape = TaggerTape::for_prediction(&config);
    let mut bits = Vec::new();
    for step in 0..8_u64 {
        bench.gradients.clear();
        for order in [[1 + step % 2, 2, 3], [4, 5, 6 + step % 3]] {
            let dropout = Dropout::new(&config, 3, step);
            let batch = tagger_invariants::batch(&order);
            bits.push(bench.accumulate(&batch, 0.1, dropout).to_bits());
        }
        adam.step(&bench.device, 1e-2, bench.model.parameters_mut(), &mut bench.gradients).unwrap();
        let mut out = Vec::new();
        let what = &tagger_invariants::batch(&[2, 3 + step % 2]);
        bench.model.emissions(&bench.device, what, &mut tape, &mut out).unwrap();
        bits.extend(out.into_iter().map(|x| u64::from(x.to_bits())));
    }
    let counts = counts(&bench.device);
    (bits, counts)
}

/// Checks that `work` gives the same bits with and without graphs, and that graphs were used.
fn check(work: impl Fn(Device) -> (Vec<u64>, GraphCounts)) {
    for precision in [Precision::Bf16, Precision::F32] {
        let eager = std::cell::RefCell::new(Vec::new());
        on_gpu(&CudaSettings { is_eager: true, ..settings(precision) }, |device| {
            let (bits, counts) = work(device());
            assert_eq!(counts, GraphCounts::default());
            *eager.borrow_mut() = bits;
        });
        on_gpu(&settings(precision), |device| {
            let (bits, counts) = work(device());
            assert!(!bits.is_empty() && bits == *eager.borrow(), "the same bits");
            assert!(counts.n_replayed > counts.n_eager && counts.n_failed == 0, "{counts:?}");
        });
    }
}

#[test]
fn masked_models_give_the_same_bits_with_graphs() {
    check(|device| train_masked_lm(&config(), device));
}

#[test]
fn taggers_give_the_same_bits_with_graphs() {
    check(|device| train_tagger(tagger_invariants::constrained(device)));
}

/// Returns `config` as a ModernBERT whose second layer has an attention window.
pub(crate) fn modern(config: Config) -> Config {
    Config {
        model_type: ModelType::ModernBert,
        n_layers: 2,
        inner_dropout: 0.1,
        rotary: Rotary {
            local_attention: 12,
            global_layers: GlobalLayers::Every(2),
            ..Rotary::default()
        },
        ..config
    }
}

#[test]
fn masked_modernberts_give_the_same_bits_with_graphs() {
    check(|device| train_masked_lm(&modern(config()), device));
}

#[test]
fn modernbert_taggers_give_the_same_bits_with_graphs() {
    let config = modern(tagger_invariants::config());
    check(|device| train_tagger(tagger_invariants::constrained_with(&config, device)));
}

/// Threads that share a GPU get the emissions of their own batches.
#[test]
fn threads_that_share_a_gpu_get_their_own_emissions() {
    on_gpu(&settings(Precision::F32), |device| {
        let bench = tagger_invariants::constrained(device());
        let emissions = |order: &[u64]| {
            let mut tape = TaggerTape::for_prediction(bench.model.config());
            let mut out = Vec::new();
            let batch = tagger_invariants::batch(order);
            bench.model.emissions(&bench.device, &batch, &mut tape, &mut out).unwrap();
            out
        };
        let orders: [&[u64]; 3] = [&[1, 2, 3], &[4, 5], &[6]];
        let alone = orders.map(&emissions);
        std::thread::scope(|scope| {
            let emissions = &emissions;
            let threads =
                orders.map(|order| scope.spawn(move || [(); 4].map(|()| emissions(order))));
            for (thread, alone) in threads.into_iter().zip(&alone) {
                assert!(thread.join().unwrap().iter().all(|found| found == alone));
            }
        });
    });
}
