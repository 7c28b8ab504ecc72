//! Invariants of the masked language model that hold for any parameters.

use crate::support::{Bench, Cpu, Golden, assert_close};
use crate::tiny::is_exactly_zero;
use melm_nn::config::{Config, GlobalLayers, ModelType, Rotary};
use melm_nn::dropout::Dropout;
use melm_nn::isa::{Isa, IsaKind};
use melm_nn::mlm::{MaskedBatch, MaskedLm};
use melm_nn::optim::{Adam, AdamSettings};
use melm_nn::params::TABLE;

fn config() -> Config {
    Config {
        vocab_size: 301,
        hidden_size: 36,
        n_layers: 2,
        n_heads: 3,
        intermediate_size: 70,
        max_position_embeddings: 40,
        ..Config::default()
    }
}

/// Returns the configuration of a ModernBERT with dropout everywhere, whose last layer has a window of four pieces on
/// each side.
fn modern_config() -> Config {
    let rotary = Rotary { local_attention: 8, ..Rotary::default() };
    let model_type = ModelType::ModernBert;
    Config { model_type, inner_dropout: 0.1, type_vocab_size: 0, rotary, ..config() }
}

/// Returns a configuration whose residual is normed, and one whose residual is a running sum.
fn configs() -> [Config; 2] {
    [config(), modern_config()]
}

/// Returns a batch with one sentence for each key in `order`. The key determines length and pieces of the sentence.
fn batch(order: &[u64]) -> MaskedBatch {
    let mut batch = MaskedBatch::default();
    for key in order {
        let n = 5 + (key * 7) % 23;
        let pieces: Vec<u32> =
            (0..n).map(|i| u32::try_from(2 + (key * 31 + i * i * 17) % 299).unwrap()).collect();
        let start = batch.sentences.n_rows();
        batch.sentences.push(&pieces, *key);
        batch.positions.extend([start + 1, start + 3]);
        batch.originals.extend([pieces[2], pieces[0]]);
    }
    batch
}

fn bench(config: &Config, cpu: Cpu) -> Bench {
    Bench::new(MaskedLm::random(config, 5).unwrap(), cpu)
}

/// The number of masked positions of each sentence of [`batch`].
const N_MASKED: usize = 2;

/// Returns the hidden states at the masked positions of the sentence `key` in the batch `order`, after a forward pass with
/// dropout.
fn rows_of(config: &Config, order: &[u64], key: u64, dropout: Dropout) -> Vec<f32> {
    let mut bench = bench(config, Cpu::new(2));
    let batch = batch(order);
    bench.accumulate(&batch, 1.0, dropout);
    let index = order.iter().position(|k| *k == key).unwrap();
    let width = bench.model.config().hidden_size;
    bench.tape.hidden().chunks_exact(N_MASKED * width).nth(index).unwrap().to_vec()
}

#[test]
fn hidden_states_do_not_depend_on_the_rest_of_the_batch() {
    for config in configs() {
        for dropout in [Dropout::NONE, Dropout::new(&config, 11, 3)] {
            let alone = rows_of(&config, &[4], 4, dropout);
            for order in [&[1, 2, 4, 3, 9][..], &[9, 4], &[4, 3, 2, 1]] {
                assert_close("rows", &rows_of(&config, order, 4, dropout), &alone, 1e-5);
            }
        }
    }
}

#[test]
fn dropout_depends_on_the_step_and_the_seed() {
    for config in configs() {
        let rows = |dropout| rows_of(&config, &[4, 2], 4, dropout);
        let base = rows(Dropout::new(&config, 11, 3));
        for other in [Dropout::NONE, Dropout::new(&config, 11, 4), Dropout::new(&config, 12, 3)] {
            assert_ne!(rows(other), base);
        }
    }
}

/// In a model with local attention only, a piece reaches as many pieces as the window in each layer, and no more.
#[test]
fn local_attention_reaches_the_window_and_no_further() {
    let layers = GlobalLayers::Listed(vec![false, false]);
    let rotary = Rotary { local_attention: 8, global_layers: layers, ..Rotary::default() };
    let config = Config { rotary, ..modern_config() };
    let states = |first: u32| {
        let mut bench = bench(&config, Cpu::new(1));
        let mut batch = MaskedBatch::default();
        let pieces: Vec<u32> = (0..20).map(|i| if i == 0 { first } else { 30 + i }).collect();
        batch.sentences.push(&pieces, 0);
        batch.positions.extend(0..20);
        batch.originals.extend([7; 20]);
        bench.accumulate(&batch, 1.0, Dropout::NONE);
        bench.tape.hidden().to_vec()
    };
    let (one, other) = (states(5), states(6));
    let rows = one.chunks_exact(config.hidden_size).zip(other.chunks_exact(config.hidden_size));
    let differs: Vec<_> = rows.map(|(one, other)| one != other).collect();
    // Two layers with four pieces on each side reach position 8.
    assert_eq!(differs, (0..20).map(|position| position <= 8).collect::<Vec<_>>());
}

/// Trains for two steps with dropout and clipping. Returns the bits of all parameters.
fn trained(config: &Config, cpu: Cpu) -> Vec<u32> {
    let mut bench = bench(config, cpu);
    let settings =
        AdamSettings { max_norm: Some(0.3), weight_decay: 0.01, ..AdamSettings::default() };
    let mut adam = Adam::new(bench.model.parameters(), settings).unwrap();
    for step in 0..2 {
        bench.gradients.clear();
        for order in [&[1, 2, 3, 4, 5, 6][..], &[7, 8]] {
            bench.accumulate(&batch(order), 0.1, Dropout::new(config, 1, step));
        }
        adam.step(&bench.device, 1e-2, bench.model.parameters_mut(), &mut bench.gradients).unwrap();
    }
    let parameters = bench.model.parameters();
    let names = parameters.list().iter().map(|p| &p.name);
    names.flat_map(|name| parameters.get(name).unwrap()).map(|x| x.to_bits()).collect()
}

#[test]
fn training_gives_the_same_bits_with_one_two_and_five_threads() {
    for config in configs() {
        for kind in [IsaKind::Avx512, IsaKind::Avx2, IsaKind::Scalar] {
            let Some(isa) = Isa::from_kind(kind) else { continue };
            let one = trained(&config, Cpu::with_isa(1, isa));
            assert_eq!(one, trained(&config, Cpu::with_isa(2, isa)));
            assert_eq!(one, trained(&config, Cpu::with_isa(5, isa)));
        }
    }
}

#[test]
fn every_parameter_gets_a_finite_gradient_that_is_not_zero() {
    let golden = Golden::read("deep.safetensors");
    let mut bench = Bench::open("deep", Cpu::new(2));
    bench.accumulate(&golden.batch(0), 1.0, Dropout::new(bench.model.config(), 1, 1));
    let names: Vec<_> = bench.model.parameters().list().iter().map(|p| p.name.clone()).collect();
    for name in names {
        let gradient = bench.gradient(&name);
        assert!(gradient.iter().all(|g| g.is_finite()), "{name}");
        if !is_exactly_zero(&name) {
            assert!(gradient.iter().any(|g| g.abs() > 1e-6), "{name}");
        }
    }
}

/// Dropout in torch drops other elements. Gradients with dropout are therefore compared with finite differences of the
/// loss.
#[test]
fn gradients_with_dropout_equal_difference_quotients() {
    for config in configs() {
        check_gradients_with_dropout(&config);
    }
}

fn check_gradients_with_dropout(config: &Config) {
    let dropout = Dropout::new(config, 2, 2);
    let batch = batch(&[3, 1, 6]);
    let mut bench = bench(config, Cpu::new(2));
    bench.model.parameters_mut().freeze(|_| false);
    // Larger weights make the finite differences larger than the rounding errors.
    let names: Vec<_> = bench.model.parameters().list().iter().map(|p| p.name.clone()).collect();
    for name in &names {
        let parts = ["dense.weight", "self.", ".attn.", ".mlp."];
        if parts.iter().any(|part| name.contains(part)) {
            bench.model.parameters_mut().get_mut(name).unwrap().iter_mut().for_each(|w| *w *= 8.0);
        }
    }
    bench.accumulate(&batch, 1.0, dropout);
    for name in &names {
        let gradient = bench.gradient(name);
        if is_exactly_zero(name) {
            continue;
        }
        // Each parameter moves along the sign of its gradient, so the slope is the sum of the absolute values.
        let slope: f64 = gradient.iter().map(|g| f64::from(g.abs())).sum();
        #[expect(clippy::cast_possible_truncation, reason = "a step need not be exact")]
        let step = (0.02 / slope) as f32;
        let loss_at = |sign: f32| {
            let mut other = self::bench(config, Cpu::new(2));
            for name in &names {
                let from = bench.model.parameters().get(name).unwrap();
                other.model.parameters_mut().get_mut(name).unwrap().copy_from_slice(from);
            }
            for (w, g) in
                other.model.parameters_mut().get_mut(name).unwrap().iter_mut().zip(&gradient)
            {
                *w += sign * step * g.signum() * f32::from(u8::from(*g != 0.0));
            }
            other.accumulate(&batch, 1.0, dropout) * batch.positions.len() as f64
        };
        let quotient = (loss_at(1.0) - loss_at(-1.0)) / (2.0 * f64::from(step));
        assert!(
            (quotient - slope).abs() < 0.02 * slope,
            "{name}: {quotient}, gradient says {slope}"
        );
    }
}

#[test]
fn head_and_embedding_share_one_table_after_a_step() {
    let mut bench = bench(&config(), Cpu::new(2));
    let batch = batch(&[1, 2]);
    bench.accumulate(&batch, 0.25, Dropout::NONE);
    let mut adam = Adam::new(bench.model.parameters(), AdamSettings::default()).unwrap();
    adam.step(&bench.device, 1e-2, bench.model.parameters_mut(), &mut bench.gradients).unwrap();
    let folder = tempfile::tempdir().unwrap();
    bench.model.save(folder.path()).unwrap();
    let saved = melm_nn::weights::Checkpoint::open(folder.path()).unwrap();
    assert!(!saved.contains("lm_head.decoder.weight"), "the table is stored once");
    let again = MaskedLm::open(&saved, 0, 0).unwrap();
    let table = |model: &MaskedLm| model.parameters().get(TABLE).unwrap().to_vec();
    assert_eq!(table(&again), table(&bench.model));
    assert_ne!(table(&again), table(&MaskedLm::random(&config(), 5).unwrap()));
}

#[test]
fn batches_that_do_not_fit_the_model_are_errors() {
    let mut bench = bench(&config(), Cpu::new(1));
    for (pieces, positions, originals) in [
        (vec![301], vec![0], vec![5]),
        (vec![5; 39], vec![0], vec![5]),
        (vec![], vec![], vec![]),
        (vec![5; 3], vec![3], vec![5]),
        (vec![5; 3], vec![1, 2], vec![5]),
        (vec![5; 3], vec![1], vec![301]),
    ] {
        let mut batch = MaskedBatch { positions, originals, ..MaskedBatch::default() };
        batch.sentences.push(&pieces, 0);
        let Bench { device, model, tape, gradients } = &mut bench;
        let outcome = model.accumulate(device, &batch, 1.0, Dropout::NONE, tape, gradients);
        assert!(outcome.is_err(), "{batch:?}");
    }
}
