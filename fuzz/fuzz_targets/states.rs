//! Restores arbitrary bytes as the saved state of a training. An even first byte gives a whole file. An odd one gives
//! edits of a valid file. Both are sealed again, so that the digest does not hide the reader.
#![no_main]

use std::sync::{LazyLock, Mutex};

use libfuzzer_sys::fuzz_target;
use melm_fuzz::Folder;
use melm_nn::config::Config;
use melm_nn::mlm::MaskedLm;
use melm_nn::optim::{Adam, AdamSettings};

/// The beginning of the entry of the digest, and the length of a digest.
const SEAL: &[u8] = b"\"sha256\":\"";
const DIGEST: usize = 64;
/// The note of a finished training.
const NOTE: &str = "epochs = []\nn_steps = 3\n";

struct Training {
    folder: Folder,
    model: MaskedLm,
    adam: Adam,
    /// A valid state.
    valid: Vec<u8>,
}

static TRAINING: LazyLock<Mutex<Training>> = LazyLock::new(|| {
    let config = Config {
        vocab_size: 8,
        hidden_size: 4,
        n_layers: 1,
        n_heads: 1,
        intermediate_size: 4,
        max_position_embeddings: 6,
        ..Config::default()
    };
    let folder = Folder::new("states");
    let model = MaskedLm::random(&config, 1).unwrap();
    let adam = Adam::new(model.parameters(), AdamSettings::default()).unwrap();
    let path = folder.path().join("state.safetensors");
    adam.save(model.parameters(), &path, NOTE).unwrap();
    let valid = std::fs::read(&path).unwrap();
    Mutex::new(Training { folder, model, adam, valid })
});

/// Applies edits of three bytes each: a position, and the byte there.
fn edit(valid: &[u8], edits: &[u8]) -> Vec<u8> {
    let mut file = valid.to_vec();
    for edit in edits.chunks_exact(3) {
        let at = usize::from(u16::from_le_bytes([edit[0], edit[1]])) % file.len();
        file[at] = edit[2];
    }
    file
}

/// Writes the right digest into a file, if it has a place for one.
fn seal(file: &mut [u8]) {
    let Some(at) = file.windows(SEAL.len()).position(|window| window == SEAL) else { return };
    let place = at + SEAL.len()..at + SEAL.len() + DIGEST;
    if place.end <= file.len() {
        file[place.clone()].fill(b'0');
        let digest = melm::files::sha256(file);
        file[place].copy_from_slice(digest.as_bytes());
    }
}

fuzz_target!(|bytes: &[u8]| {
    let [kind, rest @ ..] = bytes else { return };
    let Training { folder, model, adam, valid } = &mut *TRAINING.lock().unwrap();
    let mut file = if kind % 2 == 0 { rest.to_vec() } else { edit(valid, rest) };
    seal(&mut file);
    folder.write("done.safetensors", &file);
    let path = folder.path().join("done.safetensors");
    let _ = adam.restore(model.parameters_mut(), &path);
    let _ = model.parameters_mut().restore_trained(&path);
    let _ = melm::training::read_outcome(folder.path());
});
