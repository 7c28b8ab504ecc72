//! A step whose gradients are infinite or NaN fails, and the parameters before it are kept.

use crate::cuda::{config, on_gpu, settings};
use crate::support::{Bench, Device};
use melm_nn::Error;
use melm_nn::cuda::Precision;
use melm_nn::dropout::Dropout;
use melm_nn::mlm::{MaskedBatch, MaskedLm};
use melm_nn::optim::{Adam, AdamSettings};

fn batch() -> MaskedBatch {
    let mut batch = MaskedBatch::default();
    batch.sentences.push(&[2, 3, 4, 5, 6], 0);
    batch.positions.extend([1, 3]);
    batch.originals.extend([7, 8]);
    batch
}

/// Makes a step with gradients that are multiplied by `weight`. The loss is finite with any weight.
fn step(bench: &mut Bench, adam: &mut Adam, weight: f32) -> Result<(), Error> {
    bench.gradients.clear();
    let loss = bench.accumulate(&batch(), weight, Dropout::NONE);
    assert!(loss.is_finite());
    let Bench { device, model, gradients, .. } = bench;
    adam.step(device, 1e-3, model.parameters_mut(), gradients)?;
    adam.check_finite()
}

fn values(bench: &mut Bench) -> Vec<f32> {
    let parameters = bench.model.parameters_mut();
    parameters.fetch().unwrap();
    let names = parameters.list().iter().map(|parameter| &parameter.name);
    names.flat_map(|name| parameters.get(name).unwrap().to_vec()).collect()
}

/// Makes two good steps, a bad one and another good one.
fn check(device: &dyn Fn() -> Device, max_norm: Option<f32>) {
    for weight in [f32::NAN, f32::INFINITY, f32::MAX] {
        let mut bench = Bench::new(MaskedLm::random(&config(), 5).unwrap(), device());
        let settings = AdamSettings { max_norm, ..AdamSettings::default() };
        let mut adam = Adam::new(bench.model.parameters(), settings).unwrap();
        for _ in 0..2 {
            step(&mut bench, &mut adam, 0.5).unwrap();
        }
        let before = values(&mut bench);
        let failed = step(&mut bench, &mut adam, weight);
        assert!(matches!(failed, Err(Error::NotFiniteStep { step: 3 })), "{weight}: {failed:?}");
        if max_norm.is_some() {
            assert!(!adam.norm().unwrap().unwrap().is_finite());
            assert_eq!(values(&mut bench), before, "{weight}");
        }
    }
}

#[test]
fn a_step_that_is_not_finite_fails_on_the_cpu() {
    for max_norm in [Some(1.0), None] {
        check(&|| Device::cpu(2), max_norm);
    }
}

#[test]
fn a_step_that_is_not_finite_fails_on_a_gpu() {
    for precision in [Precision::F32, Precision::Bf16] {
        on_gpu(&settings(precision), |device| {
            for max_norm in [Some(1.0), None] {
                check(device, max_norm);
            }
        });
    }
}

/// The CPU does not wait for every step of a GPU. The GPU itself stops changing parameters.
#[test]
fn a_gpu_changes_nothing_after_a_step_that_failed() {
    on_gpu(&settings(Precision::F32), |device| {
        let mut bench = Bench::new(MaskedLm::random(&config(), 5).unwrap(), device());
        let settings = AdamSettings { max_norm: Some(1.0), ..AdamSettings::default() };
        let mut adam = Adam::new(bench.model.parameters(), settings).unwrap();
        step(&mut bench, &mut adam, 0.5).unwrap();
        let before = values(&mut bench);
        let mut failed = Ok(());
        for number in 2..40 {
            let weight = if number == 2 { f32::NAN } else { 0.5 };
            bench.gradients.clear();
            bench.accumulate(&batch(), weight, Dropout::NONE);
            let Bench { device, model, gradients, .. } = &mut bench;
            failed = adam.step(device, 1e-3, model.parameters_mut(), gradients);
            if failed.is_err() {
                break;
            }
        }
        assert!(matches!(failed, Err(Error::NotFiniteStep { step: 2 })), "{failed:?}");
        assert_eq!(values(&mut bench), before);
    });
}
