//! Shared parts of the fuzz targets.

use std::path::{Path, PathBuf};

use melm::Augment;
use melm::augment::AugmentJob;
use melm::methods::Method;
use melm_text::{Corpus, ReadOptions, Source};

/// The training set of all targets.
pub const TRAIN: &str =
    "Ada B-PER\nLovelace I-PER\nvisited O\nBonn B-LOC\n. O\n\nBonn B-LOC\nis O\nold O\n. O\n";

/// Returns the training set.
pub fn train() -> Corpus {
    Corpus::read(&Source::from_text("train.conll", TRAIN), &ReadOptions::default())
        .expect("the training set is valid")
}

/// Prepares a run that needs no model: drafts by label-wise replacement, without a judge.
pub fn without_model(n_rounds: u32) -> AugmentJob {
    let run = Augment::new(train()).method(Method::LabelWise).rounds(n_rounds);
    run.set("filter.mode=off").prepare().expect("the run needs no files")
}

/// A temporary folder of this process and target.
pub struct Folder(PathBuf);

impl Folder {
    /// Creates the folder.
    pub fn new(target: &str) -> Self {
        let folder =
            std::env::temp_dir().join(format!("melm-fuzz-{target}-{}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("the folder for temporary files is writable");
        Self(folder)
    }

    /// The path.
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// Writes a file.
    pub fn write(&self, name: &str, bytes: &[u8]) {
        std::fs::write(self.0.join(name), bytes).expect("the folder is writable");
    }
}

/// Divides the input at NUL bytes into `N` parts. Missing parts are `None`.
pub fn parts<const N: usize>(bytes: &[u8]) -> [Option<&[u8]>; N] {
    let mut all = bytes.splitn(N, |&byte| byte == 0);
    std::array::from_fn(|_| all.next())
}
