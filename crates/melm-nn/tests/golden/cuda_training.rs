//! Training on a GPU: a change of device, snapshots of the best parameters, and frozen parameters.

use crate::cuda::{config, on_gpu, settings};
use crate::cuda_graphs::modern;
use crate::support::{Bench, Device, Gradients, RELATIVE, assert_close};
use melm_nn::config::Config;
use melm_nn::cuda::{CudaSettings, Precision};
use melm_nn::dropout::Dropout;
use melm_nn::mlm::{MaskedBatch, MaskedLm, MaskedLmTape};
use melm_nn::optim::{Adam, AdamSettings};
use melm_nn::weights::{Checkpoint, ParameterSnapshot};

/// Trains one step on each of `devices`. Returns the final parameters.
fn steps(config: &Config, devices: &[&Device], freezes: fn(&str) -> bool) -> Vec<f32> {
    let mut model = MaskedLm::random(config, 5).unwrap();
    model.parameters_mut().freeze(freezes);
    let mut tape = MaskedLmTape::for_training(config);
    let settings = AdamSettings { eps: 1e-3, max_norm: Some(0.5), ..AdamSettings::default() };
    let mut adam = Adam::new(model.parameters(), settings).unwrap();
    for (step, device) in devices.iter().enumerate() {
        let mut gradients = Gradients::new(model.parameters()).unwrap();
        let mut batch = MaskedBatch::default();
        for (key, length) in [(0, 5_u32), (1, 17)] {
            let pieces: Vec<_> = (0..length).map(|i| 2 + (i * i + key) % 30).collect();
            batch.sentences.push(&pieces, u64::from(key));
        }
        // The first step has no masked positions.
        if step > 0 {
            batch.positions.extend([1, 4, 9, 20]);
            batch.originals.extend([7, 8, 9, 10]);
        }
        let dropout = Dropout::new(config, 3, step as u64);
        model.accumulate(device, &batch, 0.25, dropout, &mut tape, &mut gradients).unwrap();
        adam.step(device, 1e-2, model.parameters_mut(), &mut gradients).unwrap();
        let next = devices.get(step + 1);
        if next.is_none_or(|next| !std::ptr::eq(*next, *device)) {
            model.parameters_mut().fetch().unwrap();
        }
    }
    let list: Vec<_> = model.parameters().list().iter().map(|p| p.name.clone()).collect();
    list.iter().flat_map(|name| model.parameters().get(name).unwrap().to_vec()).collect()
}

fn small(hidden_size: usize) -> Config {
    Config {
        vocab_size: 41,
        hidden_size,
        n_layers: 1,
        n_heads: 2,
        intermediate_size: 9,
        max_position_embeddings: 30,
        ..Config::default()
    }
}

#[test]
fn training_can_start_without_masked_positions_and_move_between_devices() {
    let cpu = Device::cpu(2);
    let wanted = steps(&small(12), &[&cpu; 5], |_| false);
    on_gpu(&settings(Precision::F32), |device| {
        let (gpu, other) = (device(), device());
        for devices in
            [[&gpu; 5], [&gpu, &gpu, &cpu, &cpu, &gpu], [&cpu, &gpu, &other, &other, &cpu]]
        {
            let found = steps(&small(12), &devices, |_| false);
            assert_close("parameters", &found, &wanted, RELATIVE);
        }
    });
}

/// Takes a snapshot of the parameters, trains further, and restores the snapshot. The snapshot is stored in GPU memory,
/// or in CPU memory if too little GPU memory is free.
#[test]
fn snapshots_restore_the_same_bits() {
    let check = |device: Device| {
        let mut bench = Bench::new(MaskedLm::random(&config(), 5).unwrap(), device);
        let mut adam = Adam::new(bench.model.parameters(), AdamSettings::default()).unwrap();
        let mut kept = ParameterSnapshot::default();
        let mut trained = |bench: &mut Bench| -> (f64, Vec<f32>) {
            bench.gradients.clear();
            bench.accumulate(&small_batch(), 0.02, Dropout::NONE);
            adam.step(&bench.device, 1e-2, bench.model.parameters_mut(), &mut bench.gradients)
                .unwrap();
            seen(bench)
        };
        let peak = |bench: &Bench| match &bench.device {
            Device::Cuda(cuda) => cuda.peak_bytes(),
            Device::Cpu(_) => 0,
        };
        trained(&mut bench);
        let before = peak(&bench);
        for _ in 0..2 {
            let wanted = trained(&mut bench);
            bench.model.parameters().snapshot_trained(&mut kept).unwrap();
            assert!(trained(&mut bench) != wanted);
            bench.model.parameters_mut().restore_snapshot(&kept).unwrap();
            assert!(seen(&mut bench) == wanted);
        }
        // The snapshot is also restored if the parameters were changed on the CPU in the meantime.
        let wanted = seen(&mut bench);
        bench.model.parameters_mut().get_mut("lm_head.bias").unwrap().fill(1.0);
        bench.model.parameters_mut().restore_snapshot(&kept).unwrap();
        assert!(seen(&mut bench) == wanted);
        (before, peak(&bench))
    };
    check(Device::cpu(2));
    on_gpu(&settings(Precision::Bf16), |device| {
        let (before, after) = check(device());
        assert!(before < after, "kept in GPU memory");
        let short = CudaSettings { max_bytes: Some(after), ..settings(Precision::Bf16) };
        on_gpu(&short, |device| assert!(check(device()).1 < after, "kept in CPU memory"));
    });
}

fn small_batch() -> MaskedBatch {
    let mut batch = MaskedBatch::default();
    batch.sentences.push(&[5, 60, 7, 80, 9], 0);
    batch.positions.push(2);
    batch.originals.push(70);
    batch
}

/// Returns the loss of a batch, and the parameters after saving and reopening the model.
fn seen(bench: &mut Bench) -> (f64, Vec<f32>) {
    let loss = bench.accumulate(&small_batch(), 0.02, Dropout::NONE);
    let folder = tempfile::tempdir().unwrap();
    bench.model.save(folder.path()).unwrap();
    let saved = MaskedLm::open(&Checkpoint::open(folder.path()).unwrap(), 0, 0).unwrap();
    let list = saved.parameters().list().iter();
    (loss, list.flat_map(|p| saved.parameters().get(&p.name).unwrap().to_vec()).collect())
}

#[test]
fn odd_widths_frozen_parts_and_large_heads_equal_the_cpu() {
    // The projection to queries, or in ModernBERT that to queries, keys and values.
    let freezes = |name: &str| name.contains("attention.self.q");
    // Rows of which a thread has more than four columns.
    let wide = Config { n_heads: 8, ..small(1032) };
    for config in [small(10), small(256), wide, modern(small(20)), modern(small(256))] {
        let wanted = steps(&config, &[&Device::cpu(2); 3], freezes);
        on_gpu(&settings(Precision::F32), |device| {
            let found = steps(&config, &[&device(); 3], freezes);
            assert_close("parameters", &found, &wanted, RELATIVE);
        });
    }
}
