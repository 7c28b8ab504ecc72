//! A finished run, and whether its results are still as the run wrote them.

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::path::{Component, Path, PathBuf};

use serde_json::Value;

use super::{FolderState, RECORD, RunFolder};
use crate::Error;
use crate::files::Fingerprint;

/// A run that was finished before.
pub struct FinishedRun {
    /// The content of `run.json`.
    pub record: Value,
    /// The name of a result file that was changed after it was written.
    pub changed: Option<String>,
    /// The name of a result file that is missing.
    pub(crate) missing: Option<String>,
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
    ///
    /// # Errors
    /// [`Error::ForeignFile`] if `run.json` names a file that is not in its folder.
    pub(crate) fn finished(&self) -> Result<Option<FinishedRun>, Error> {
        let is_done = self.state == FolderState::Done;
        let Some(record) = is_done.then(|| self.record()).flatten() else { return Ok(None) };
        let mut run = FinishedRun { record, changed: None, missing: None };
        self.compare_files(&mut run)?;
        Ok(Some(run))
    }

    /// Finds the first result file that was changed after the run wrote it, and the first that is missing.
    fn compare_files(&self, run: &mut FinishedRun) -> Result<(), Error> {
        let files = run.record["files"].as_object().into_iter().flatten();
        for (name, wanted) in files {
            if !is_file_name(name) {
                let (path, name) = (self.dir().join(RECORD), name.clone());
                return Err(Error::ForeignFile { path, name });
            }
            let place = match checksum(&self.dir().join(name)) {
                Ok(found) if wanted.as_str() == Some(&found) => continue,
                Err(Error::Read { source, .. }) if source.kind() == ErrorKind::NotFound => {
                    &mut run.missing
                }
                Ok(_) | Err(_) => &mut run.changed,
            };
            place.get_or_insert_with(|| name.clone());
        }
        Ok(())
    }
}

/// Returns true if a name has no folder. Other names could lead out of the folder of the run.
fn is_file_name(name: &str) -> bool {
    let mut parts = Path::new(name).components();
    let is_one = matches!((parts.next(), parts.next()), (Some(Component::Normal(_)), None));
    is_one && !name.contains(['/', '\\'])
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
