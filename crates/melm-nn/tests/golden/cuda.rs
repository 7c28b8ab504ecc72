//! Runs the golden tests on a real GPU if there is one, else on an emulated GPU.

use crate::support::{Bench, Device, RELATIVE, assert_close, relative_error};
use crate::tagger::TaggerBench;
use crate::{added_rows, steps, tagger, tagger_invariants, tiny};
use melm_nn::Error;
use melm_nn::config::Config;
use melm_nn::cuda::{Cuda, CudaSettings, Precision};
use melm_nn::dropout::Dropout;
use melm_nn::mlm::{AllowedPieces, MaskedBatch, MaskedLm, PieceSets, Predictions};
use melm_nn::tagger::TaggedBatch;

/// The relative tolerance for bf16, whose significand has eight bits.
pub(crate) const ROUGH: f32 = 2e-2;

pub(crate) fn settings(precision: Precision) -> CudaSettings {
    let roots = ["/opt/torch/.venv", "/usr/local/cuda"].map(std::path::PathBuf::from).to_vec();
    CudaSettings { precision, is_checked: true, roots, ..CudaSettings::default() }
}

#[expect(clippy::print_stdout, reason = "a skipped test has to be reported")]
fn print(line: &str) {
    println!("{line}");
}

/// Runs `check` with a function that opens the GPU anew at each call. The GPU is a real one if there is one, else an
/// emulated one. Does nothing if there is no GPU and the emulator does not support this platform.
pub(crate) fn on_gpu(settings: &CudaSettings, check: impl Fn(&dyn Fn() -> Device)) {
    match Cuda::open(settings) {
        Ok(cuda) => {
            print(&format!("on {}", cuda.name()));
            check(&|| Cuda::open(settings).unwrap().into());
        }
        Err(error) => {
            print(&format!("no GPU, emulated instead: {error}"));
            if cfg!(all(target_arch = "x86_64", unix)) {
                check(&|| Cuda::emulated(settings).unwrap().into());
            }
        }
    }
}

#[test]
fn loss_and_gradients_equal_torch() {
    on_gpu(&settings(Precision::F32), |device| {
        for name in tiny::MODELS {
            tiny::check(name, device(), RELATIVE);
        }
    });
}

#[test]
fn loss_and_gradients_are_close_to_torch_in_bf16() {
    on_gpu(&settings(Precision::Bf16), |device| {
        for name in tiny::MODELS {
            tiny::check(name, device(), ROUGH);
        }
    });
}

#[test]
fn gradients_of_ten_batches_are_close_to_the_cpu_in_bf16() {
    on_gpu(&settings(Precision::Bf16), |device| {
        for name in tiny::MODELS {
            let batches = |device: Device| tiny::gradients(name, device);
            let (found, wanted) = (batches(device()), batches(Device::cpu(2)));
            for (number, (found, wanted)) in found.iter().zip(&wanted).enumerate() {
                print(&format!(
                    "{name}, batch {number}: off by {:.1e}",
                    relative_error(found, wanted)
                ));
                assert_close(&format!("{name}, batch {number}"), found, wanted, ROUGH);
            }
        }
    });
}

#[test]
fn models_without_kernels_use_the_configured_number_of_cpu_threads() {
    let n_threads = std::num::NonZeroUsize::new(3);
    on_gpu(&CudaSettings { n_threads, ..settings(Precision::F32) }, |device| {
        let device = device();
        let cpu = device.to_cpu();
        assert!(matches!(&*cpu, Device::Cpu(cpu) if cpu.n_threads() == 3));
    });
}

#[test]
fn candidates_have_the_log_softmax_of_torch() {
    on_gpu(&settings(Precision::F32), |device| tiny::check_candidates(device, RELATIVE));
}

#[test]
fn ten_clipped_steps_equal_torch() {
    on_gpu(&settings(Precision::F32), |device| {
        steps::check(steps::ADAM, device, RELATIVE);
        steps::check(steps::ADAMW, device, RELATIVE);
    });
}

#[test]
fn ten_clipped_steps_are_close_to_torch_in_bf16() {
    on_gpu(&settings(Precision::Bf16), |device| {
        steps::check(steps::ADAM, device, ROUGH);
        steps::check(steps::ADAMW, device, ROUGH);
    });
}

#[test]
fn the_norm_equals_that_of_the_whole_gradients() {
    on_gpu(&settings(Precision::F32), |device| steps::check_norm(device(), 1e-5));
}

#[test]
fn micro_batches_add_up_to_the_whole_batch() {
    on_gpu(&settings(Precision::F32), |device| steps::check_micro_batches(device, RELATIVE));
}

#[test]
fn frozen_parameters_stay_and_the_others_change() {
    on_gpu(&settings(Precision::F32), |device| steps::check_frozen(device()));
}

#[test]
fn ten_clipped_steps_of_added_rows_equal_torch() {
    on_gpu(&settings(Precision::F32), |device| {
        added_rows::check(steps::ADAM, device, RELATIVE);
        added_rows::check(steps::ADAMW, device, RELATIVE);
    });
}

#[test]
fn ten_clipped_steps_of_added_rows_are_close_to_torch_in_bf16() {
    on_gpu(&settings(Precision::Bf16), |device| {
        added_rows::check(steps::ADAM, device, ROUGH);
        added_rows::check(steps::ADAMW, device, ROUGH);
    });
}

#[test]
fn training_of_added_rows_resumes_and_adds_up_micro_batches() {
    on_gpu(&settings(Precision::F32), |device| {
        added_rows::check_resuming(device);
        added_rows::check_micro_batches(device, RELATIVE);
        added_rows::check_snapshots(device());
    });
}

#[test]
fn taggers_equal_torch() {
    on_gpu(&settings(Precision::F32), |device| tagger::check_all(device, RELATIVE));
}

/// A model with room for sentences longer than one attention tile, a vocabulary larger than one segment, and dropout.
pub(crate) fn config() -> Config {
    Config {
        vocab_size: 613,
        hidden_size: 72,
        n_layers: 2,
        n_heads: 2,
        intermediate_size: 90,
        max_position_embeddings: 90,
        ..Config::default()
    }
}

pub(crate) fn batch() -> MaskedBatch {
    let mut batch = MaskedBatch::default();
    for (key, length) in (0_u32..).zip([83, 7, 33, 64, 1]) {
        let start = batch.sentences.n_rows();
        let pieces: Vec<_> = (0..length).map(|i| 2 + (key * 131 + i * i * 17) % 600).collect();
        batch.sentences.push(&pieces, 40 + u64::from(key));
        for position in (0..pieces.len()).step_by(3) {
            batch.positions.push(start + position);
            batch.originals.push(pieces[position]);
        }
    }
    batch
}

/// Returns the loss and all gradients of a batch with dropout, each with its name.
fn gradients(device: Device, batch: &MaskedBatch) -> Vec<(String, Vec<f32>)> {
    let mut model = MaskedLm::random(&config(), 5).unwrap();
    for name in ["lm_head.bias", "roberta.encoder.layer.0.attention.self.key.bias"] {
        for (index, value) in (0_u8..50).zip(model.parameters_mut().get_mut(name).unwrap()) {
            *value = f32::from(index % 7) / 20.0;
        }
    }
    // Makes the weights as large as in a trained model, so that attention is not uniform.
    for layer in 0..2 {
        for kind in ["query", "key"] {
            let name = format!("roberta.encoder.layer.{layer}.attention.self.{kind}.weight");
            model.parameters_mut().get_mut(&name).unwrap().iter_mut().for_each(|x| *x *= 10.0);
        }
    }
    let dropout = Dropout::new(model.config(), 3, 17);
    let mut bench = Bench::new(model, device);
    let loss = bench.accumulate(batch, 0.02, dropout);
    let names: Vec<_> = bench.model.parameters().list().iter().map(|p| p.name.clone()).collect();
    let mut all: Vec<_> = names
        .into_iter()
        .filter(|name| !tiny::is_exactly_zero(name))
        .map(|name| (name.clone(), bench.gradient(&name)))
        .collect();
    #[expect(clippy::cast_possible_truncation, reason = "the precision of the engine")]
    all.push(("loss".to_owned(), vec![loss as f32]));
    all
}

pub(crate) fn assert_same(
    found: &[(String, Vec<f32>)],
    wanted: &[(String, Vec<f32>)],
    relative: f32,
) {
    for ((name, wanted), (_, found)) in wanted.iter().zip(found) {
        assert_close(name, found, wanted, relative);
    }
}

#[test]
fn gradients_with_dropout_and_long_sentences_equal_the_cpu() {
    let wanted = gradients(Device::cpu(2), &batch());
    on_gpu(&settings(Precision::F32), |device| {
        assert_same(&gradients(device(), &batch()), &wanted, RELATIVE);
    });
    on_gpu(&settings(Precision::Bf16), |device| {
        assert_same(&gradients(device(), &batch()), &wanted, ROUGH);
    });
}

#[test]
fn the_same_step_gives_the_same_bits() {
    on_gpu(&settings(Precision::Bf16), |device| {
        let bits = || {
            let found = gradients(device(), &batch());
            found.into_iter().flat_map(|(_, x)| x).map(f32::to_bits).collect::<Vec<_>>()
        };
        assert!(bits() == bits());
    });
}

/// If memory does not suffice, the batch is split in halves until they fit. If not even one sentence fits, the error
/// contains the sizes.
#[test]
fn short_memory_splits_batches_and_keeps_the_gradients() {
    let wanted = gradients(Device::cpu(2), &batch());
    for (max_bytes, is_enough) in [(9 << 19, true), (1 << 20, false)] {
        let settings = CudaSettings { max_bytes: Some(max_bytes), ..settings(Precision::F32) };
        on_gpu(&settings, |device| {
            let device = device();
            if is_enough {
                assert_same(&gradients(device, &batch()), &wanted, RELATIVE);
            } else {
                let model = MaskedLm::random(&config(), 5).unwrap();
                let mut bench = Bench::new(model, device);
                let Bench { device, model, tape, gradients } = &mut bench;
                let failed = model
                    .accumulate(device, &batch(), 0.02, Dropout::NONE, tape, gradients)
                    .unwrap_err();
                assert!(matches!(failed, Error::DeviceMemory { wanted, .. } if wanted > 0));
            }
        });
    }
}

#[test]
fn the_best_allowed_pieces_equal_the_cpu() {
    let model = || MaskedLm::random(&config(), 5).unwrap();
    let mut sets = PieceSets::default();
    sets.add(613, |piece| piece % 7 == 3);
    sets.add(613, |_| true);
    sets.add(613, |piece| piece == 612);
    sets.add(613, |_| false);
    let batch = batch();
    let set_of: Vec<_> = (0..batch.positions.len()).map(|at| at % 4).collect();
    let predict = |device: Device| {
        let mut bench = Bench::new(model(), device);
        let allowed = AllowedPieces { sets: &sets, set_of: &set_of };
        let mut out = Predictions::default();
        let Bench { device, model, tape, .. } = &mut bench;
        model.predict_allowed(device, &batch, 5, allowed, tape, &mut out).unwrap();
        out
    };
    let wanted = predict(Device::cpu(2));
    on_gpu(&settings(Precision::F32), |device| {
        let found = predict(device());
        assert_eq!(found.n_rows(), wanted.n_rows());
        for row in 0..wanted.n_rows() {
            assert_eq!(found.row(row).len(), wanted.row(row).len(), "row {row}");
            for (found, wanted) in found.row(row).iter().zip(wanted.row(row)) {
                assert_eq!(found.piece, wanted.piece, "row {row}");
                assert!((found.log_probability - wanted.log_probability).abs() < 1e-4);
            }
        }
    });
}

/// Tests a CRF with forbidden transitions, sentences of several lengths, and dropout.
#[test]
fn constrained_crfs_equal_the_cpu() {
    let train = |device: Device| {
        let mut bench = tagger_invariants::constrained(device);
        let batch = tagger_invariants::batch(&[1, 2, 3, 4, 5, 6]);
        let dropout = Dropout::new(bench.model.config(), 3, 17);
        let loss = bench.accumulate(&batch, 0.1, dropout);
        #[expect(clippy::cast_possible_truncation, reason = "the precision of the engine")]
        let mut all = vec![("loss".to_owned(), vec![loss as f32])];
        for name in bench.names().into_iter().filter(|name| !tiny::is_exactly_zero(name)) {
            all.push((name.clone(), bench.gradient(&name)));
        }
        all
    };
    let wanted = train(Device::cpu(2));
    on_gpu(&settings(Precision::F32), |device| assert_same(&train(device()), &wanted, RELATIVE));
}

/// A long sentence can have windows whose tokens all belong to other windows.
#[test]
fn a_batch_without_tokens_has_no_emissions() {
    let mut batch = TaggedBatch::default();
    batch.push(1, &[2, 5, 7, 3], &[], &[]);
    on_gpu(&settings(Precision::Bf16), |device| {
        let TaggerBench { device, model, mut tape, .. } = tagger_invariants::constrained(device());
        for batch in [&batch, &TaggedBatch::default()] {
            let mut emissions = vec![1.0];
            model.emissions(&device, batch, &mut tape, &mut emissions).unwrap();
            assert!(emissions.is_empty());
        }
    });
}
