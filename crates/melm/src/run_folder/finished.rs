//! A finished run, and whether its results are still as the run wrote them.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::{FolderState, RunFolder};
use crate::Error;
use crate::files::Fingerprint;

/// A run that was finished before.
pub struct FinishedRun {
    /// The content of `run.json`.
    pub record: Value,
    /// The name of a result file that was changed after it was written.
    pub changed: Option<String>,
}

impl FinishedRun {
    /// Returns a warning if a result file was changed after it was written. `dir` is the folder of the run.
    pub fn warning(&self, dir: &Path) -> Option<String> {
        let path = dir.join(self.changed.as_ref()?);
        Some(format!("`{}` was changed after the run wrote it", path.display()))
    }
}

impl RunFolder {
    /// Returns the run in this folder if it is finished.
    pub(crate) fn finished(&self) -> Option<FinishedRun> {
        let is_done = self.state == FolderState::Done;
        let record = is_done.then(|| self.record()).flatten()?;
        let changed = self.changed_file(&record);
        Some(FinishedRun { record, changed })
    }

    /// Returns the name of the first result file that was changed after the run wrote it.
    fn changed_file(&self, record: &Value) -> Option<String> {
        let is_changed = |(name, wanted): &(&String, &Value)| {
            checksum(&self.dir().join(name)).is_ok_and(|found| wanted.as_str() != Some(&found))
        };
        record["files"].as_object()?.iter().find(is_changed).map(|(name, _)| name.clone())
    }
}

/// The SHA-256 of result files by name.
pub(crate) fn checksums(paths: &[PathBuf]) -> Result<BTreeMap<String, String>, Error> {
    let entry = |path: &PathBuf| {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        Ok((name, checksum(path)?))
    };
    paths.iter().map(entry).collect()
}

/// Returns the SHA-256 of a file, which may be larger than the memory.
fn checksum(path: &Path) -> Result<String, Error> {
    let mut fingerprint = Fingerprint::default();
    fingerprint.add_file(path)?;
    Ok(fingerprint.finish())
}
