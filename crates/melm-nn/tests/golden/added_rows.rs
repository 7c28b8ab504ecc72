//! Compares training of added rows with torch: the pretrained rows are frozen, the rows of added pieces are trained.

use crate::steps::{ADAM, ADAMW, GoldenRun, train};
use crate::support::{Bench, Device, Golden, RELATIVE, assert_close, testdata};
use crate::tiny::MODELS;
use melm_nn::dropout::Dropout;
use melm_nn::mlm::MaskedLm;
use melm_nn::optim::{Adam, AdamSettings};
use melm_nn::params::TABLE;
use melm_nn::weights::{Checkpoint, ParameterSnapshot};

pub(crate) const BIAS: &str = "lm_head.bias";
/// The number of added pieces in the golden files.
const N_ADDED: usize = 5;

/// Opens a model with added pieces, whose rows are those of the golden file, and freezes tensors.
pub(crate) fn open(name: &str, golden: &Golden, device: Device, frozen: &[&str]) -> Bench {
    let checkpoint = Checkpoint::open(&testdata(name)).unwrap();
    let mut model = MaskedLm::open(&checkpoint, N_ADDED, 0).unwrap();
    for (tensor, start) in [(TABLE, "start.table"), (BIAS, "start.bias")] {
        let rows = golden.floats(start);
        let values = model.parameters_mut().get_mut(tensor).unwrap();
        let first = values.len() - rows.len();
        values[first..].copy_from_slice(rows);
    }
    model.parameters_mut().freeze(|name| frozen.contains(&name));
    Bench::new(model, device)
}

/// Returns the tensors that are frozen in the golden run.
fn frozen_tensors(run: &GoldenRun) -> &'static [&'static str] {
    if run.prefix == ADAM.prefix { &[TABLE] } else { &[TABLE, BIAS] }
}

/// Returns the last `n` values of a tensor, and the values before them.
fn split_tensor<'a>(model: &'a MaskedLm, name: &str, n: usize) -> (&'a [f32], &'a [f32]) {
    let values = model.parameters().get(name).unwrap();
    values.split_at(values.len() - n)
}

/// Compares the first gradients and ten clipped steps with torch. The frozen rows must stay the same, bit by bit.
pub(crate) fn check(run: GoldenRun, device: &dyn Fn() -> Device, relative: f32) {
    let GoldenRun { prefix, learning_rate, settings, .. } = run;
    let frozen = frozen_tensors(&run);
    for name in MODELS {
        let golden = Golden::read(&format!("{name}.added.safetensors"));
        let mut bench = open(name, &golden, device(), frozen);
        check_gradient(&mut bench, &golden, prefix, relative);
        let (norms, losses) = train(&mut bench, &golden, learning_rate, settings);
        assert_close("norms", &norms, golden.floats(&format!("{prefix}.norms")), relative);
        assert_close("losses", &losses, golden.floats(&format!("{prefix}.losses")), relative);
        bench.model.parameters_mut().fetch().unwrap();
        let before = open(name, &golden, Device::cpu(1), frozen).model;
        for tensor in [TABLE, BIAS, "roberta.embeddings.LayerNorm.weight", "lm_head.dense.bias"] {
            let wanted = golden.floats(&format!("{prefix}.{tensor}"));
            let (pretrained, trained) = split_tensor(&bench.model, tensor, wanted.len());
            assert_close(tensor, trained, wanted, relative);
            let (start, _) = split_tensor(&before, tensor, wanted.len());
            assert!(pretrained == start, "{tensor}: frozen rows have changed");
        }
    }
}

/// Compares the gradient of the added rows. Frozen rows of the table have no gradient.
fn check_gradient(bench: &mut Bench, golden: &Golden, prefix: &str, relative: f32) {
    let batch = golden.batch(0);
    bench.accumulate(&batch, 1.0 / batch.positions.len() as f32, Dropout::NONE);
    for name in golden.under(&format!("{prefix}.gradient.")) {
        let wanted = golden.floats(&format!("{prefix}.gradient.{name}"));
        let found = bench.gradient(name);
        let (frozen, added) = found.split_at(found.len() - wanted.len());
        assert_close(name, added, wanted, relative);
        assert!(name != TABLE || frozen.iter().all(|g| g.to_bits() == 0), "frozen rows");
    }
}

#[test]
fn ten_clipped_steps_of_adam_equal_torch() {
    check(ADAM, &|| Device::cpu(2), RELATIVE);
}

#[test]
fn ten_clipped_steps_of_adamw_equal_torch() {
    check(ADAMW, &|| Device::cpu(2), RELATIVE);
}

/// Trains with micro-batches, some of which contain no added piece, then saves, restores and trains further. A resumed
/// training ends with the same bits, and the file contains only trained rows.
#[test]
fn a_resumed_training_ends_with_the_same_bits() {
    check_resuming(&|| Device::cpu(2));
}

pub(crate) fn check_resuming(device: &dyn Fn() -> Device) {
    let golden = Golden::read("deep.added.safetensors");
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("state.safetensors");
    let start = || {
        let bench = open("deep", &golden, device(), &[TABLE]);
        let adam = Adam::new(bench.model.parameters(), ADAMW.settings).unwrap();
        (bench, adam)
    };
    let (mut bench, mut adam) = start();
    update(&mut bench, &mut adam, &golden, [0, 1]);
    adam.save(bench.model.parameters(), &path, "").unwrap();
    update(&mut bench, &mut adam, &golden, [2, 3]);

    let (mut again, mut other) = start();
    other.restore(again.model.parameters_mut(), &path).unwrap();
    update(&mut again, &mut other, &golden, [2, 3]);
    assert!(values(&mut again) == values(&mut bench));
    assert_stored_rows(&path, bench.model.config().hidden_size);
}

/// Makes one update with two micro-batches: one without and one with added pieces.
fn update(bench: &mut Bench, adam: &mut Adam, golden: &Golden, batches: [usize; 2]) {
    let plain = Golden::read("deep.safetensors").batch(batches[0]);
    bench.gradients.clear();
    bench.accumulate(&plain, 0.02, Dropout::NONE);
    bench.accumulate(&golden.batch(batches[1]), 0.02, Dropout::NONE);
    adam.step(&bench.device, 1e-2, bench.model.parameters_mut(), &mut bench.gradients).unwrap();
}

fn values(bench: &mut Bench) -> Vec<f32> {
    bench.model.parameters_mut().fetch().unwrap();
    let parameters = bench.model.parameters();
    parameters.list().iter().flat_map(|p| parameters.get(&p.name).unwrap().to_vec()).collect()
}

/// Asserts that the stored table and its moments contain the added rows only.
fn assert_stored_rows(path: &std::path::Path, width: usize) {
    let bytes = std::fs::read(path).unwrap();
    let stored = safetensors::SafeTensors::deserialize(&bytes).unwrap();
    for kind in ["value", "mean", "square"] {
        let table = stored.tensor(&format!("{kind}/{TABLE}")).unwrap();
        assert_eq!(table.shape(), [N_ADDED, width], "{kind}");
    }
}

#[test]
fn a_step_with_micro_batches_equals_a_step_with_one_batch() {
    check_micro_batches(&|| Device::cpu(2), 1e-5);
}

/// Compares the norm and the added rows after a step with two micro-batches with those after a step with one batch.
pub(crate) fn check_micro_batches(device: &dyn Fn() -> Device, relative: f32) {
    let golden = Golden::read("odd.added.safetensors");
    let halves = [golden.batch(0), golden.batch(4)];
    let [mut whole, second] = halves.clone();
    let offset = whole.sentences.n_rows();
    for sentence in 0..second.sentences.n_sentences() {
        whole.sentences.push(&second.sentences.pieces()[second.sentences.rows(sentence)], 100);
    }
    whole.positions.extend(second.positions.iter().map(|row| row + offset));
    whole.originals.extend(&second.originals);
    let settings = AdamSettings { max_norm: Some(0.5), eps: 1e-6, ..AdamSettings::default() };
    let step = |batches: &[melm_nn::mlm::MaskedBatch]| {
        let mut bench = open("odd", &golden, device(), &[TABLE]);
        for batch in batches {
            bench.accumulate(batch, 0.02, Dropout::NONE);
        }
        let mut adam = Adam::new(bench.model.parameters(), settings).unwrap();
        adam.step(&bench.device, 0.01, bench.model.parameters_mut(), &mut bench.gradients).unwrap();
        let norm = adam.norm().unwrap().unwrap();
        (norm, values(&mut bench))
    };
    let (one, two) = (step(&[whole]), step(&halves));
    assert!((one.0 - two.0).abs() < f64::from(relative) * one.0, "{} {}", one.0, two.0);
    assert_close("parameters", &two.1, &one.1, relative);
}

#[test]
fn snapshots_restore_the_added_rows() {
    check_snapshots(Device::cpu(2));
}

pub(crate) fn check_snapshots(device: Device) {
    let golden = Golden::read("deep.added.safetensors");
    let mut bench = open("deep", &golden, device, &[TABLE]);
    let mut adam = Adam::new(bench.model.parameters(), ADAMW.settings).unwrap();
    update(&mut bench, &mut adam, &golden, [0, 1]);
    let mut kept = ParameterSnapshot::default();
    bench.model.parameters().snapshot_trained(&mut kept).unwrap();
    let wanted = values(&mut bench);
    update(&mut bench, &mut adam, &golden, [2, 3]);
    assert!(values(&mut bench) != wanted);
    bench.model.parameters_mut().restore_snapshot(&kept).unwrap();
    assert!(values(&mut bench) == wanted);
}
