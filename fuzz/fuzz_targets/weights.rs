//! Opens arbitrary bytes as the weights of a tiny model, and reads every tensor of an accepted file.
#![no_main]

use std::path::PathBuf;
use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use melm_nn::weights::Checkpoint;

/// The configuration of `testdata/weights/f32`, so that the file there is a good seed.
const CONFIG: &str = include_str!("../../testdata/weights/f32/config.json");

/// A folder of this process with the configuration.
static FOLDER: LazyLock<PathBuf> = LazyLock::new(|| {
    let folder = std::env::temp_dir().join(format!("melm-fuzz-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("config.json"), CONFIG).unwrap();
    folder
});

fuzz_target!(|bytes: &[u8]| {
    std::fs::write(FOLDER.join("model.safetensors"), bytes).unwrap();
    let Ok(checkpoint) = Checkpoint::open(&FOLDER) else { return };
    for name in checkpoint.names() {
        let Some(shape) = checkpoint.shape(name) else { continue };
        let n_values = shape.iter().product();
        let mut values = vec![0.0; n_values];
        let _ = checkpoint.read_into(name, shape, &mut values);
    }
});
