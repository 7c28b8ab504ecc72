//! Compares ten optimiser steps with torch, with clipping and with accumulation over micro-batches.

use crate::families;
use crate::support::{Bench, Cpu, Device, Golden, RELATIVE, assert_close};
use crate::tiny::is_exactly_zero;
use melm_nn::dropout::Dropout;
use melm_nn::optim::{Adam, AdamSettings};
use melm_nn::params::TABLE;

/// Settings of an optimiser. The golden files contain the parameters that torch computes after ten steps with them.
#[derive(Clone, Copy)]
pub(crate) struct GoldenRun {
    /// The prefix of the names of these parameters in the golden files.
    pub(crate) prefix: &'static str,
    pub(crate) learning_rate: f32,
    pub(crate) settings: AdamSettings,
    /// Returns true for the names of parameters that are not compared.
    skips: fn(&str) -> bool,
}

/// Adam with a tiny epsilon. The biases of keys are not compared: their exact gradient is zero, so Adam follows
/// rounding errors, in torch too.
pub(crate) const ADAM: GoldenRun = GoldenRun {
    prefix: "adam",
    learning_rate: 1e-3,
    settings: AdamSettings {
        beta1: 0.9,
        beta2: 0.999,
        eps: 1e-8,
        weight_decay: 0.0,
        max_norm: Some(10.0),
    },
    skips: is_exactly_zero,
};
pub(crate) const ADAMW: GoldenRun = GoldenRun {
    prefix: "adamw",
    learning_rate: 2e-3,
    settings: AdamSettings {
        beta1: 0.9,
        beta2: 0.999,
        eps: 1e-3,
        weight_decay: 0.1,
        max_norm: Some(8.0),
    },
    skips: |_| false,
};

/// Trains for ten steps. Returns the gradient norms before clipping and the losses.
pub(crate) fn train(
    bench: &mut Bench,
    golden: &Golden,
    learning_rate: f32,
    settings: AdamSettings,
) -> (Vec<f32>, Vec<f32>) {
    let mut adam = Adam::new(bench.model.parameters(), settings).unwrap();
    let (mut norms, mut losses) = (Vec::new(), Vec::new());
    for step in 0..10 {
        let batch = golden.batch(step);
        bench.gradients.clear();
        let loss = bench.accumulate(&batch, 1.0 / batch.positions.len() as f32, Dropout::NONE);
        let Bench { device, model, gradients, .. } = &mut *bench;
        adam.step(device, learning_rate, model.parameters_mut(), gradients).unwrap();
        #[expect(clippy::cast_possible_truncation, reason = "the golden file's precision")]
        {
            norms.push(adam.norm().unwrap().unwrap() as f32);
            losses.push(loss as f32);
        }
    }
    (norms, losses)
}

/// Compares ten steps on `device` with the golden files.
pub(crate) fn check(run: GoldenRun, device: &dyn Fn() -> Device, relative: f32) {
    for name in ["odd", "deep"] {
        let golden = Golden::read(&format!("{name}.safetensors"));
        check_bench(run, &golden, Bench::open(name, device()), relative);
    }
}

/// Compares ten steps of a model with a golden file.
fn check_bench(run: GoldenRun, golden: &Golden, mut bench: Bench, relative: f32) {
    let GoldenRun { prefix, learning_rate, settings, skips } = run;
    let (norms, losses) = train(&mut bench, golden, learning_rate, settings);
    assert_close("norms", &norms, golden.floats(&format!("{prefix}.norms")), relative);
    assert_close("losses", &losses, golden.floats(&format!("{prefix}.losses")), relative);
    bench.model.parameters_mut().fetch().unwrap();
    for parameter in
        bench.model.parameters().list().iter().map(|p| &p.name).filter(|name| !skips(name))
    {
        let found = bench.model.parameters().get(parameter).unwrap();
        let wanted = golden.floats(&format!("{prefix}.{parameter}"));
        assert_close(parameter, found, wanted, relative);
    }
}

/// The families with golden steps: one whose residual is normed, and one whose residual is a running sum.
const FAMILIES: [&str; 2] = ["bert", "modernbert"];

/// Compares ten steps of tiny models of other families with torch.
pub(crate) fn check_families(device: &dyn Fn() -> Device, relative: f32) {
    for name in FAMILIES {
        let golden = Golden::read(&format!("../family_steps/{name}.safetensors"));
        let max_norm = Some(golden.floats("max_norm")[0]);
        for run in [ADAM, ADAMW] {
            let run = GoldenRun { settings: AdamSettings { max_norm, ..run.settings }, ..run };
            let model = families::masked_lm(&families::folder(&format!("{name}.lm")));
            check_bench(run, &golden, Bench::new(model, device()), relative);
        }
    }
}

#[test]
fn ten_clipped_steps_of_families_equal_torch() {
    check_families(&|| Device::cpu(2), RELATIVE);
}

#[test]
fn ten_clipped_steps_of_adam_equal_torch() {
    check(ADAM, &|| Device::cpu(2), RELATIVE);
}

#[test]
fn ten_clipped_steps_of_adamw_equal_torch() {
    check(ADAMW, &|| Device::cpu(2), RELATIVE);
}

#[test]
fn the_norm_equals_that_of_the_whole_gradients() {
    check_norm(Device::cpu(2), 1e-5);
}

pub(crate) fn check_norm(device: Device, relative: f64) {
    let golden = Golden::read("odd.safetensors");
    let mut bench = Bench::open("odd", device);
    for index in [0, 2, 4] {
        bench.accumulate(&golden.batch(index), 0.05, Dropout::NONE);
    }
    let names: Vec<_> = bench.model.parameters().list().iter().map(|p| p.name.clone()).collect();
    let squares =
        names.iter().flat_map(|name| bench.gradient(name)).map(|g| f64::from(g) * f64::from(g));
    let wanted = squares.sum::<f64>().sqrt();
    let mut adam = Adam::new(
        bench.model.parameters(),
        AdamSettings { max_norm: Some(1.0), ..AdamSettings::default() },
    )
    .unwrap();
    adam.step(&bench.device, 0.0, bench.model.parameters_mut(), &mut bench.gradients).unwrap();
    let found = adam.norm().unwrap().unwrap();
    assert!((found - wanted).abs() < relative * wanted, "{found} {wanted}");
}

#[test]
fn micro_batches_add_up_to_the_whole_batch() {
    check_micro_batches(&|| Device::cpu(2), 1e-5);
}

pub(crate) fn check_micro_batches(device: &dyn Fn() -> Device, relative: f32) {
    let golden = Golden::read("deep.safetensors");
    let (a, b) = (golden.batch(0), golden.batch(4));
    let mut whole = a.clone();
    let offset = a.sentences.n_rows();
    for sentence in 0..b.sentences.n_sentences() {
        whole.sentences.push(&b.sentences.pieces()[b.sentences.rows(sentence)], 100);
    }
    whole.positions.extend(b.positions.iter().map(|row| row + offset));
    whole.originals.extend(&b.originals);
    let weight = 1.0 / whole.positions.len() as f32;
    let train = |batches: &[&melm_nn::mlm::MaskedBatch]| {
        let mut bench = Bench::open("deep", device());
        for batch in batches {
            bench.accumulate(batch, weight, Dropout::NONE);
        }
        let settings = AdamSettings { max_norm: Some(0.5), eps: 1e-6, ..AdamSettings::default() };
        let mut adam = Adam::new(bench.model.parameters(), settings).unwrap();
        adam.step(&bench.device, 0.01, bench.model.parameters_mut(), &mut bench.gradients).unwrap();
        bench.model.parameters_mut().fetch().unwrap();
        bench.model
    };
    let (one, two) = (train(&[&whole]), train(&[&a, &b]));
    for parameter in one.parameters().list() {
        let name = &parameter.name;
        assert_close(
            name,
            two.parameters().get(name).unwrap(),
            one.parameters().get(name).unwrap(),
            relative,
        );
    }
}

#[test]
fn frozen_parameters_stay_and_the_others_change() {
    check_frozen(Device::cpu(2));
}

pub(crate) fn check_frozen(device: Device) {
    let golden = Golden::read("odd.safetensors");
    let mut bench = Bench::open("odd", device);
    let is_frozen = |name: &str| name == TABLE || name.starts_with("roberta.encoder.layer.0.");
    assert_eq!(bench.model.parameters_mut().freeze(is_frozen), 17);
    let settings = AdamSettings { max_norm: Some(1.0), ..AdamSettings::default() };
    train(&mut bench, &golden, 1e-2, settings);
    bench.model.parameters_mut().fetch().unwrap();
    let before = Bench::open("odd", Cpu::new(1)).model;
    for parameter in before.parameters().list() {
        let name = parameter.name.as_str();
        let is_same =
            before.parameters().get(name).unwrap() == bench.model.parameters().get(name).unwrap();
        assert_eq!(is_same, is_frozen(name), "{name}");
    }
}
