//! Runs models of other families than XLM-R on a GPU: bf16, optimiser steps, and ModernBERT with dropout, sentences
//! longer than a tile and attention windows.

use crate::cuda::{ROUGH, assert_same, batch, config, on_gpu, settings};
use crate::cuda_graphs::modern;
use crate::families::{check_masked_lm, check_tagger};
use crate::support::{Bench, Device, RELATIVE, Tolerance};
use crate::{steps, tagger_invariants};
use melm_nn::cuda::{CudaSettings, Precision};
use melm_nn::dropout::Dropout;
use melm_nn::mlm::{MaskedBatch, MaskedLm, Predictions};

#[test]
fn bert_is_close_to_transformers_in_bf16() {
    on_gpu(&settings(Precision::Bf16), |device| {
        check_masked_lm("bert", device(), ROUGH);
        check_tagger("bert", device(), ROUGH);
    });
}

/// The tiny model is only twelve columns wide, so that rounding changes the gradient of one norm by a little more
/// than [`ROUGH`]. A wider model is compared with the CPU below.
#[test]
fn modernbert_is_close_to_transformers_in_bf16() {
    let tolerance = Tolerance { tensor: 3e-2, whole: ROUGH };
    on_gpu(&settings(Precision::Bf16), |device| {
        check_masked_lm("modernbert", device(), tolerance);
        check_tagger("modernbert", device(), tolerance);
    });
}

#[test]
fn ten_clipped_steps_of_families_equal_torch() {
    on_gpu(&settings(Precision::F32), |device| steps::check_families(device, RELATIVE));
}

#[test]
fn ten_clipped_steps_of_families_are_close_to_torch_in_bf16() {
    on_gpu(&settings(Precision::Bf16), |device| steps::check_families(device, ROUGH));
}

/// Returns a masked language model whose attention is as uneven as in a trained model.
fn masked_modernbert() -> MaskedLm {
    let mut model = MaskedLm::random(&modern(config()), 5).unwrap();
    let names: Vec<_> = model.parameters().list().iter().map(|p| p.name.clone()).collect();
    for name in names.iter().filter(|name| name.ends_with("Wqkv.weight")) {
        model.parameters_mut().get_mut(name).unwrap().iter_mut().for_each(|x| *x *= 10.0);
    }
    model
}

/// Returns the loss and all gradients of a batch with dropout, each with its name.
fn gradients(device: Device, batch: &MaskedBatch) -> Vec<(String, Vec<f32>)> {
    gradients_and_peak(device, batch).0
}

/// Returns the result of [`gradients`], and the highest number of bytes of GPU memory in use.
fn gradients_and_peak(device: Device, batch: &MaskedBatch) -> (Vec<(String, Vec<f32>)>, usize) {
    let model = masked_modernbert();
    let dropout = Dropout::new(model.config(), 3, 17);
    let mut bench = Bench::new(model, device);
    let loss = bench.accumulate(batch, 0.02, dropout);
    let names: Vec<_> = bench.model.parameters().list().iter().map(|p| p.name.clone()).collect();
    let mut all: Vec<_> =
        names.into_iter().map(|name| (name.clone(), bench.gradient(&name))).collect();
    #[expect(clippy::cast_possible_truncation, reason = "the precision of the engine")]
    all.push(("loss".to_owned(), vec![loss as f32]));
    let peak = match &bench.device {
        Device::Cuda(cuda) => cuda.peak_bytes(),
        Device::Cpu(_) => 0,
    };
    (all, peak)
}

#[test]
fn gradients_of_modernbert_with_dropout_and_long_sentences_equal_the_cpu() {
    let wanted = gradients(Device::cpu(2), &batch());
    on_gpu(&settings(Precision::F32), |device| {
        assert_same(&gradients(device(), &batch()), &wanted, RELATIVE);
    });
    on_gpu(&settings(Precision::Bf16), |device| {
        assert_same(&gradients(device(), &batch()), &wanted, ROUGH);
    });
}

#[test]
fn the_same_step_of_modernbert_gives_the_same_bits() {
    on_gpu(&settings(Precision::Bf16), |device| {
        let bits = || {
            let found = gradients(device(), &batch());
            found.into_iter().flat_map(|(_, x)| x).map(f32::to_bits).collect::<Vec<_>>()
        };
        assert!(bits() == bits());
    });
}

#[test]
fn short_memory_splits_batches_of_modernbert_and_keeps_the_gradients() {
    let wanted = gradients(Device::cpu(2), &batch());
    let peak = std::cell::Cell::new(0);
    let whole = settings(Precision::F32);
    on_gpu(&whole, |device| peak.set(gradients_and_peak(device(), &batch()).1));
    // With seven eighths of the memory, the batch has to be split.
    let max_bytes = Some(peak.get() / 8 * 7);
    on_gpu(&CudaSettings { max_bytes, ..whole.clone() }, |device| {
        assert_same(&gradients(device(), &batch()), &wanted, RELATIVE);
    });
}

#[test]
fn the_best_pieces_of_modernbert_equal_the_cpu() {
    let predict = |device: Device| {
        let mut bench = Bench::new(masked_modernbert(), device);
        let mut out = Predictions::default();
        let Bench { device, model, tape, .. } = &mut bench;
        model.predict(device, &batch(), 5, tape, &mut out).unwrap();
        out
    };
    let wanted = predict(Device::cpu(2));
    on_gpu(&settings(Precision::F32), |device| {
        let found = predict(device());
        assert_eq!(found.n_rows(), wanted.n_rows());
        for row in 0..wanted.n_rows() {
            for (found, wanted) in found.row(row).iter().zip(wanted.row(row)) {
                assert_eq!(found.piece, wanted.piece, "row {row}");
                assert!((found.log_probability - wanted.log_probability).abs() < 1e-4);
            }
        }
    });
}

/// Tests a CRF with forbidden transitions, sentences of several lengths, and dropout.
#[test]
fn constrained_crfs_of_modernbert_equal_the_cpu() {
    let config = modern(tagger_invariants::config());
    let train = |device: Device| {
        let mut bench = tagger_invariants::constrained_with(&config, device);
        let batch = tagger_invariants::batch(&[1, 2, 3, 4, 5, 6]);
        let loss = bench.accumulate(&batch, 0.1, Dropout::new(&config, 3, 17));
        #[expect(clippy::cast_possible_truncation, reason = "the precision of the engine")]
        let mut all = vec![("loss".to_owned(), vec![loss as f32])];
        for name in bench.names() {
            all.push((name.clone(), bench.gradient(&name)));
        }
        all
    };
    let wanted = train(Device::cpu(2));
    on_gpu(&settings(Precision::F32), |device| assert_same(&train(device()), &wanted, RELATIVE));
    on_gpu(&settings(Precision::Bf16), |device| assert_same(&train(device()), &wanted, ROUGH));
}
