//! Compares tiny random models with torch: the hidden states, logits, loss and gradients of one batch.

use crate::support::{Bench, Cpu, Device, Golden, RELATIVE, Tolerance, assert_close, largest};
use melm_nn::dropout::Dropout;
use melm_nn::isa::{Isa, IsaKind};
use melm_nn::mlm::{MaskedBatch, Predictions};

pub(crate) const MODELS: [&str; 2] = ["odd", "deep"];

/// Returns true for the biases of keys. Adding a constant to every key does not change attention. The exact gradient of
/// these biases is therefore zero, and the computed gradient is only rounding error.
pub(crate) fn is_exactly_zero(name: &str) -> bool {
    name.ends_with("attention.self.key.bias") || name.ends_with("attention.k_lin.bias")
}

pub(crate) fn check(name: &str, device: impl Into<Device>, relative: f32) {
    check_bench(&format!("{name}.safetensors"), &mut Bench::open(name, device), relative);
}

/// Compares a masked language model with a golden file.
pub(crate) fn check_bench(golden: &str, bench: &mut Bench, tolerance: impl Into<Tolerance>) {
    let Tolerance { tensor, whole: relative } = tolerance.into();
    let golden = Golden::read(golden);
    let batch = golden.batch(0);
    let weight = 1.0 / batch.positions.len() as f32;
    let loss = bench.accumulate(&batch, weight, Dropout::NONE);
    #[expect(clippy::cast_possible_truncation, reason = "the golden file's precision")]
    assert_close("loss", &[loss as f32], golden.floats("loss"), relative);
    let out = &mut Predictions::default();
    let sum = bench.model.loss(&bench.device, &batch, &mut bench.tape, out).unwrap();
    #[expect(clippy::cast_possible_truncation, reason = "the golden file's precision")]
    assert_close("loss alone", &[sum as f32 * weight], golden.floats("loss"), relative);
    let n_hidden = match &bench.device {
        Device::Cpu(_) => bench.model.config().n_layers + 1,
        Device::Cuda(_) => 0,
    };
    if n_hidden > 0 {
        // The last layer computes only the masked positions. Ask for all rows.
        let positions = (0..batch.sentences.n_rows()).collect();
        let all = MaskedBatch { positions, originals: Vec::new(), ..batch.clone() };
        bench.model.predict(&bench.device, &all, 1, &mut bench.tape, out).unwrap();
    }
    for layer in 0..n_hidden {
        let what = format!("hidden{layer}");
        assert_close(&what, bench.tape.hidden_after(layer), golden.floats(&what), relative);
    }
    let scale = golden
        .under("gradient.")
        .map(|n| largest(golden.floats(&format!("gradient.{n}"))))
        .fold(0.0, f32::max);
    let mut n_checked = 0;
    let mut all = (Vec::new(), Vec::new());
    for parameter in golden.under("gradient.") {
        let wanted = golden.floats(&format!("gradient.{parameter}"));
        let found = bench.gradient(parameter);
        if is_exactly_zero(parameter) {
            assert!(
                largest(&found) < 0.05 * relative * scale && largest(wanted) < 1e-6 * scale,
                "{parameter}"
            );
        } else {
            assert_close(parameter, &found, wanted, tensor);
            all.0.extend(found);
            all.1.extend_from_slice(wanted);
        }
        n_checked += 1;
    }
    assert_close("all gradients", &all.0, &all.1, relative);
    assert_eq!(n_checked, bench.model.parameters().list().len());
}

/// Returns the gradients of ten batches. Each vector contains the gradients of all parameters for one batch.
pub(crate) fn gradients(name: &str, device: Device) -> Vec<Vec<f32>> {
    let golden = Golden::read(&format!("{name}.safetensors"));
    let mut bench = Bench::open(name, device);
    let names: Vec<_> = golden.under("gradient.").filter(|name| !is_exactly_zero(name)).collect();
    let mut of_batch = |number: usize| {
        let batch = golden.batch(number);
        bench.gradients.clear();
        bench.accumulate(&batch, 1.0 / batch.positions.len() as f32, Dropout::NONE);
        names.iter().flat_map(|name| bench.gradient(name)).collect()
    };
    (0..10).map(&mut of_batch).collect()
}

#[test]
fn hidden_states_loss_and_gradients_equal_torch_on_every_instruction_set() {
    for kind in [IsaKind::Avx512, IsaKind::Avx2, IsaKind::Gemm, IsaKind::Scalar] {
        let Some(isa) = Isa::from_kind(kind) else { continue };
        for name in MODELS {
            check(name, Cpu::with_isa(2, isa), RELATIVE);
        }
    }
}

/// Compares the log-probabilities of all pieces of a small vocabulary with the log-softmax of torch's logits.
#[test]
fn candidates_have_the_log_softmax_of_torch() {
    check_candidates(|| Device::cpu(2), RELATIVE);
}

pub(crate) fn check_candidates(device: impl Fn() -> Device, relative: f32) {
    for name in MODELS {
        let golden = Golden::read(&format!("{name}.safetensors"));
        let mut bench = Bench::open(name, device());
        let batch = golden.batch(0);
        let n_pieces = bench.model.config().vocab_size;
        let mut out = Predictions::default();
        let Bench { device, model, tape, .. } = &mut bench;
        model.predict(device, &batch, n_pieces, tape, &mut out).unwrap();
        assert_eq!(out.n_rows(), batch.positions.len());
        for (row, logits) in golden.floats("logits").chunks_exact(n_pieces).enumerate() {
            let total: f64 = logits.iter().map(|x| f64::from(*x).exp()).sum();
            let candidates = out.row(row);
            assert!(candidates.is_sorted_by(|a, b| a.log_probability >= b.log_probability));
            let mut found = vec![f32::NAN; n_pieces];
            for candidate in candidates {
                found[candidate.piece as usize] = candidate.log_probability;
            }
            #[expect(clippy::cast_possible_truncation, reason = "the golden file's precision")]
            let wanted: Vec<f32> =
                logits.iter().map(|x| (f64::from(*x) - total.ln()) as f32).collect();
            assert_close("log-probabilities", &found, &wanted, relative);
        }
    }
}
