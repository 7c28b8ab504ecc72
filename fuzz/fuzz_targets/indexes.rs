//! Opens arbitrary bytes as the index of the weights of a tiny model, whose only shard is valid, and reads every tensor.
#![no_main]

use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use melm_fuzz::Folder;
use melm_nn::weights::Checkpoint;

/// The files of `testdata/weights/f32`.
const CONFIG: &[u8] = include_bytes!("../../testdata/weights/f32/config.json");
const WEIGHTS: &[u8] = include_bytes!("../../testdata/weights/f32/model.safetensors");

static FOLDER: LazyLock<Folder> = LazyLock::new(|| {
    let folder = Folder::new("indexes");
    folder.write("config.json", CONFIG);
    folder.write("a.safetensors", WEIGHTS);
    folder
});

fuzz_target!(|bytes: &[u8]| {
    FOLDER.write("model.safetensors.index.json", bytes);
    let Ok(checkpoint) = Checkpoint::open(FOLDER.path()) else { return };
    for name in checkpoint.names() {
        let Some(shape) = checkpoint.shape(name) else { continue };
        let mut values = vec![0.0; shape.iter().product()];
        let _ = checkpoint.read_into(name, shape, &mut values);
    }
});
