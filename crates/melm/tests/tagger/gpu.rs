//! Trainings on a GPU that is lost, or whose memory does not suffice. The GPU is emulated.

use melm::Error;
use melm::stage::{Control, Event};
use melm::tagger::{TaggerHead, TaggerSettings, TrainedTagger};
use melm::training::EvaluationInterval;
use melm_nn::cuda::{Cuda, CudaSettings, Precision};
use melm_nn::device::Device;
use std::path::Path;

use crate::resume::bytes;
use crate::support::{TEXT, corpus, settings, train_in};

fn cuda_settings() -> CudaSettings {
    CudaSettings { precision: Precision::F32, ..CudaSettings::default() }
}

fn healthy() -> Device {
    Device::from(Cuda::emulated(&cuda_settings()).unwrap())
}

fn tagger_settings() -> TaggerSettings {
    let mut settings = settings(TaggerHead::Crf);
    settings.training.budget = "6 updates".parse().unwrap();
    settings.training.evaluate_every = EvaluationInterval::updates(3.try_into().unwrap());
    settings
}

/// Trains in `dir`, and saves the state after every second update.
fn train_on(dir: &Path, device: &Device) -> Result<TrainedTagger, Error> {
    let save = &mut |event: Event<'_>| match event {
        Event::Progress { done, .. } if done % 2 == 0 => Control::Save,
        _ => Control::Continue,
    };
    train_in(dir, Some("work"), &corpus(TEXT), &tagger_settings(), device, save)
}

/// The emulator compiles kernels for this machine.
fn has_emulator() -> bool {
    cfg!(all(target_arch = "x86_64", unix))
}

#[test]
fn too_many_tags_for_a_crf_on_a_gpu_are_refused_before_the_training() {
    if !has_emulator() {
        return;
    }
    let text: String = (0..256).map(|at| format!("a B-T{at}\n\n")).collect();
    let dir = tempfile::tempdir().unwrap();
    let train = |head| {
        let (settings, mut proceed) = (settings(head), |_: Event<'_>| Control::Stop);
        train_in(dir.path(), None, &corpus(&text), &settings, &healthy(), &mut proceed).err()
    };
    let error = train(TaggerHead::Crf).unwrap();
    assert!(matches!(error, Error::TooManyGpuTags { n_tags: 513, limit: 512 }), "{error}");
    let error = train(TaggerHead::Linear).unwrap();
    assert!(matches!(error, Error::Interrupted), "{error}");
}

#[test]
fn a_lost_gpu_keeps_the_last_state_and_the_training_continues_to_the_same_bytes() {
    if !has_emulator() {
        return;
    }
    let whole = tempfile::tempdir().unwrap();
    let expected = bytes(whole.path(), &train_on(whole.path(), &healthy()).unwrap());
    let mut saved_states = Vec::new();
    for n_uploads in 0.. {
        let dir = tempfile::tempdir().unwrap();
        let device = Device::from(Cuda::emulated_until(&cuda_settings(), n_uploads).unwrap());
        let Err(error) = train_on(dir.path(), &device) else { break };
        let text = error.to_string();
        let Error::DeviceFailed { stage: "tagger", step, saved, .. } = error else {
            panic!("{text}")
        };
        // If an evaluation fails, the message names the update before it, whose state may be saved.
        assert!((1..=6).contains(&step), "{text}");
        assert!(saved.is_none_or(|saved| saved <= step && saved.is_multiple_of(2)), "{text}");
        let wanted = match saved {
            Some(n) => format!("the state after update {n} is saved: run the same command again"),
            None => "run the same command again to start it again".to_owned(),
        };
        assert!(text.contains(&wanted), "{text}");
        let is_first = saved_states.last() != Some(&saved);
        saved_states.push(saved);
        if is_first {
            // Continuing takes time, so that one case for each saved state is enough.
            let trained = train_on(dir.path(), &healthy()).unwrap();
            assert_eq!(bytes(dir.path(), &trained), expected, "lost after {n_uploads} uploads");
        }
    }
    saved_states.dedup();
    assert!(saved_states.starts_with(&[None, Some(2), Some(4)]), "{saved_states:?}");
}

#[test]
fn a_gpu_without_memory_saves_the_state_and_the_training_continues_to_the_same_bytes() {
    if !has_emulator() {
        return;
    }
    let whole = tempfile::tempdir().unwrap();
    let expected = bytes(whole.path(), &train_on(whole.path(), &healthy()).unwrap());
    // The memory is short for the parameters, for the first pass and for the optimiser.
    for max_bytes in [1 << 20, 26 << 17, 27 << 17, 28 << 17] {
        let dir = tempfile::tempdir().unwrap();
        let small = CudaSettings { max_bytes: Some(max_bytes), ..cuda_settings() };
        let device = Device::from(Cuda::emulated(&small).unwrap());
        let error = train_on(dir.path(), &device).err().unwrap();
        let text = error.to_string();
        assert!(matches!(error, Error::DeviceFailed { step: 1, saved: Some(0), .. }), "{text}");
        let cause = std::error::Error::source(&error).unwrap().to_string();
        assert!(cause.contains("the CUDA device has too little memory"), "{cause}");
        let trained = train_on(dir.path(), &healthy()).unwrap();
        assert_eq!(bytes(dir.path(), &trained), expected, "{max_bytes} bytes");
    }
}
