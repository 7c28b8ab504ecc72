//! Two processes in one folder, and damaged files of earlier stages.

use std::fs;
use std::path::Path;
use std::time::Duration;

use crate::augment::{FAST, augment_into, prepared};
use crate::support::{assert_same, done, folder, melm, run};
use crate::tagger::train_into;

/// Runs a command that must fail. Returns its messages.
fn refused(folder: &Path, args: &str) -> String {
    let output = run(folder, args);
    let messages = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{args}: {messages}");
    messages
}

/// Starts a long command, waits until it has locked the folder `out`, and runs `second`. Then ends the first command.
fn refused_beside(folder: &Path, first: &str, out: &str, second: &str) {
    let mut child = melm(folder, first).spawn().unwrap();
    let (lock, number) = (folder.join(out).join(".lock"), child.id().to_string());
    while !fs::read_to_string(&lock).is_ok_and(|owner| owner.contains(&number)) {
        std::thread::sleep(Duration::from_millis(5));
        assert!(child.try_wait().unwrap().is_none(), "the first command has ended");
    }
    let messages = refused(folder, second);
    child.kill().unwrap();
    child.wait().unwrap();
    let expected = format!("is in use by process {number}, which started at 20");
    assert!(messages.contains(&expected), "{messages}");
}

/// Covers `melm::error::InUse`.
#[test]
fn a_second_process_in_a_folder_is_refused() {
    let folder = folder();
    let long = train_into("tagger", "--updates 100000");
    refused_beside(folder.path(), &long, "tagger", &long);
    // A killed process does not keep the folder, and `--force` does not break the lock.
    let other = train_into("tagger", "--updates 2 --force");
    refused_beside(folder.path(), &long, "tagger", &other);
    done(folder.path(), &other);
    assert!(!folder.path().join("tagger/.lock").exists());

    let folder = prepared();
    let long = FAST.replace("'4 epochs'", "'100000 epochs'");
    fs::write(folder.path().join("fast.toml"), long).unwrap();
    let augment = augment_into("more", "");
    refused_beside(folder.path(), &augment, "more", &augment);
}

/// Changes one bit in the middle of a file, and restores the file when the value is dropped.
struct FlippedBit<'a> {
    path: &'a Path,
    whole: Vec<u8>,
}

impl<'a> FlippedBit<'a> {
    fn new(path: &'a Path) -> Self {
        let whole = fs::read(path).unwrap();
        let mut flipped = whole.clone();
        flipped[whole.len() / 2] ^= 4;
        fs::write(path, flipped).unwrap();
        Self { path, whole }
    }
}

impl Drop for FlippedBit<'_> {
    fn drop(&mut self) {
        fs::write(self.path, &self.whole).unwrap();
    }
}

/// Covers `melm::error::DamagedStage` and `melm-nn::error::DamagedState`.
#[test]
fn a_flipped_bit_in_a_stage_is_refused() {
    let folder = prepared();
    done(folder.path(), &augment_into("out", "--rounds 2"));
    let more = augment_into("out", "--rounds 3");
    for file in ["finetune/done.safetensors", "judge/done.safetensors", "finetune/metrics.jsonl"] {
        let path = folder.path().join("out/.stages").join(file);
        let _flipped = FlippedBit::new(&path);
        let messages = refused(folder.path(), &more);
        let expected = format!("/{file}` is damaged: its checksum does not fit its content");
        assert!(messages.contains(&expected), "{messages}");
    }
    // The command works again with whole files. The cure of the message makes a stage again.
    done(folder.path(), &more);
    fs::remove_dir_all(folder.path().join("out/.stages/finetune")).unwrap();
    for out in ["out", "whole"] {
        done(folder.path(), &augment_into(out, "--rounds 4"));
    }
    assert_same(&folder.path().join("whole"), &folder.path().join("out"));
}

#[test]
fn a_damaged_state_of_an_interrupted_training_is_refused() {
    let folder = folder();
    let train = train_into("tagger", "--updates 100000 --save-every 0");
    let mut child = melm(folder.path(), &train).spawn().unwrap();
    let state = folder.path().join("tagger/.unfinished/tagger/state.safetensors");
    while !state.exists() {
        std::thread::sleep(Duration::from_millis(5));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    let check = || {
        let messages = refused(folder.path(), &train);
        assert!(messages.contains("state.safetensors` is damaged"), "{messages}");
        assert!(messages.contains("remove the folder `tagger/.unfinished/tagger`"), "{messages}");
    };
    {
        let _flipped = FlippedBit::new(&state);
        check();
    }
    let whole = fs::read(&state).unwrap();
    for len in [0, 5, whole.len() / 2, whole.len() - 1] {
        fs::write(&state, &whole[..len]).unwrap();
        check();
    }
}

/// Fills a tensor of a model with one value.
fn fill_tensor(path: &Path, name: &str, value: f32) {
    let mut bytes = fs::read(path).unwrap();
    let len = usize::try_from(u64::from_le_bytes(bytes[..8].try_into().unwrap())).unwrap();
    let header: serde_json::Value = serde_json::from_slice(&bytes[8..8 + len]).unwrap();
    let offset = |at: usize| header[name]["data_offsets"][at].as_u64().unwrap();
    let [start, end] = [0, 1].map(|at| 8 + len + usize::try_from(offset(at)).unwrap());
    for number in bytes[start..end].chunks_exact_mut(4) {
        number.copy_from_slice(&value.to_le_bytes());
    }
    fs::write(path, bytes).unwrap();
}

#[test]
fn a_training_that_is_not_finite_stops_and_saves_nothing() {
    let folder = folder();
    let weights = folder.path().join("model/model.safetensors");
    let train = train_into("tagger", "--updates 9 --save-every 0");
    fill_tensor(&weights, "roberta.encoder.layer.0.output.dense.weight", 1e30);
    let messages = refused(folder.path(), &train);
    assert!(messages.contains("the training `tagger` diverged at update 1: its"), "{messages}");
    assert!(messages.contains("not finite; nothing was saved after update 0"), "{messages}");
    let work = folder.path().join("tagger/.unfinished/tagger");
    assert!(!work.join("state.safetensors").exists() && !work.join("done.safetensors").exists());
    fill_tensor(&weights, "roberta.encoder.layer.0.output.dense.weight", f32::NAN);
    let messages = refused(folder.path(), &train_into("other", "--updates 9"));
    assert!(messages.contains("has a number that is not finite"), "{messages}");
}
