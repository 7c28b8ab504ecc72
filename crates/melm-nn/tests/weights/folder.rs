//! A copy of a model folder that a test may damage.

use std::path::{Path, PathBuf};

use melm_nn::Error;
use melm_nn::weights::Checkpoint;
use tempfile::TempDir;

pub(crate) struct Folder {
    dir: TempDir,
}

/// Returns the path of a folder made by `tools/make_weights_golden.py`.
pub(crate) fn golden(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/weights").join(name)
}

impl Folder {
    pub(crate) fn copy_of(name: &str) -> Self {
        let dir = TempDir::new().unwrap();
        for file in std::fs::read_dir(golden(name)).unwrap() {
            let file = file.unwrap();
            std::fs::copy(file.path(), dir.path().join(file.file_name())).unwrap();
        }
        Self { dir }
    }

    pub(crate) fn path(&self) -> &Path {
        self.dir.path()
    }

    pub(crate) fn read(&self, file: &str) -> Vec<u8> {
        std::fs::read(self.path().join(file)).unwrap()
    }

    pub(crate) fn write(&self, file: &str, bytes: impl AsRef<[u8]>) {
        std::fs::write(self.path().join(file), bytes).unwrap();
    }

    pub(crate) fn remove(&self, file: &str) {
        std::fs::remove_file(self.path().join(file)).unwrap();
    }

    /// Edits the JSON header of `model.safetensors` and leaves the tensor data unchanged.
    pub(crate) fn edit_header(&self, edit: impl FnOnce(&mut serde_json::Value)) {
        let bytes = self.read("model.safetensors");
        let (length, rest) = bytes.split_at(8);
        let length = usize::try_from(u64::from_le_bytes(length.try_into().unwrap())).unwrap();
        let mut header = serde_json::from_slice(&rest[..length]).unwrap();
        edit(&mut header);
        let header = header.to_string();
        let mut edited = (header.len() as u64).to_le_bytes().to_vec();
        edited.extend_from_slice(header.as_bytes());
        edited.extend_from_slice(&rest[length..]);
        self.write("model.safetensors", edited);
    }

    pub(crate) fn open(&self) -> Result<Checkpoint, Error> {
        Checkpoint::open(self.path())
    }

    pub(crate) fn error(&self) -> Error {
        self.open().err().expect("the folder is damaged")
    }
}

/// Returns the bits of all tensors in alphabetical order.
pub(crate) fn all_bits(checkpoint: &Checkpoint) -> Result<Vec<u32>, Error> {
    let mut bits = Vec::new();
    for name in checkpoint.names() {
        let shape = checkpoint.shape(name).unwrap();
        let mut out = vec![0.0f32; shape.iter().product()];
        checkpoint.read_into(name, shape, &mut out)?;
        bits.extend(out.iter().map(|value| value.to_bits()));
    }
    Ok(bits)
}
