//! Files with one JSON object on each line. Several processes may write files of one folder.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::Write;
use std::path::{Path, PathBuf};

use melm::files::{MAX_RUN_FILE, refuse_links};
use melm_nn::files::read_bytes;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::Error;

/// Files that only `melm augment`, `train` and `finetune` make: the record of a run, its lock and its state.
const FILES_OF_RUNS: [&str; 3] = ["run.json", ".lock", ".unfinished"];

/// A file that lines are added to. No other process can open it meanwhile.
pub(crate) struct LineFile {
    path: PathBuf,
    file: File,
}

impl LineFile {
    /// Opens a file for adding lines. Creates folder and file if they do not exist. Removes an incomplete last line, which
    /// a killed run may leave. Fails if another process has the file open, if the file is a link or too large, or if the
    /// folder belongs to a run of another kind.
    pub(crate) fn open(dir: &Path, name: &str) -> Result<Self, Error> {
        if FILES_OF_RUNS.iter().any(|name| dir.join(name).exists()) {
            return Err(Error::FolderOfRun { dir: dir.to_path_buf() });
        }
        fs::create_dir_all(dir)
            .map_err(|source| melm::Error::Write { path: dir.into(), source })?;
        let path = dir.join(name);
        refuse_links(&path)?;
        let failed = |source| melm::Error::Write { path: path.clone(), source };
        let mut file = OpenOptions::new();
        let mut file = file.create(true).read(true).append(true).open(&path).map_err(failed)?;
        // Ignore file systems without locks: there, two runs at once would only do the same work twice.
        if let Err(TryLockError::WouldBlock) = file.try_lock() {
            return Err(Error::LedgerInUse { path });
        }
        let unread = |source| melm::Error::Read { path: path.clone(), source };
        let text = read_bytes(&path, MAX_RUN_FILE).map_err(unread)?;
        let whole = text.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
        if whole < text.len() {
            file.set_len(whole as u64).map_err(failed)?;
            file.flush().map_err(failed)?;
        }
        Ok(Self { path, file })
    }

    /// Adds a line.
    pub(crate) fn add(&mut self, line: &impl Serialize) -> Result<(), Error> {
        let text = serde_json::to_string(line).expect("a line is JSON") + "\n";
        let written = self.file.write_all(text.as_bytes()).and_then(|()| self.file.sync_data());
        written.map_err(|source| melm::Error::Write { path: self.path.clone(), source }.into())
    }
}

/// Returns the lines of the files of a folder whose names begin with `start` and end in `.jsonl`, in the order of their
/// names. Returns no lines if there is no such folder. Fails if a file is too large, or a line cannot be parsed.
pub(crate) fn read_lines<L: DeserializeOwned>(dir: &Path, start: &str) -> Result<Vec<L>, Error> {
    if !dir.is_dir() {
        return Ok(Vec::new());
    }
    let failed = |source| melm::Error::Read { path: dir.to_path_buf(), source };
    let mut paths = Vec::new();
    for entry in fs::read_dir(dir).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        let is_own = name.starts_with(start)
            && path.extension().is_some_and(|extension| extension == "jsonl");
        paths.extend(is_own.then_some(path));
    }
    paths.sort();
    let mut lines = Vec::new();
    for path in paths {
        let bytes = read_bytes(&path, MAX_RUN_FILE)
            .map_err(|source| melm::Error::Read { path: path.clone(), source })?;
        // The last line may be incomplete: another shard may be writing it now.
        let whole = bytes.iter().rposition(|byte| *byte == b'\n').unwrap_or(0);
        let texts = bytes[..whole].split(|byte| *byte == b'\n').enumerate();
        for (at, text) in texts.filter(|(_, text)| !text.trim_ascii().is_empty()) {
            lines.push(serde_json::from_slice(text).map_err(|error| Error::LedgerLine {
                path: path.clone(),
                line: at + 1,
                message: format!("column {}: {}", error.column(), message(&error)),
            })?);
        }
    }
    Ok(lines)
}

/// Returns the message of an error without its line number, which is always 1 because each line is parsed alone.
fn message(error: &serde_json::Error) -> String {
    let text = error.to_string();
    text.rfind(" at line ").map_or(text.clone(), |at| text[..at].to_owned())
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[test]
    fn lines_are_not_added_through_a_link() {
        let dir = tempfile::tempdir().unwrap();
        let other = dir.path().join("other");
        fs::write(&other, "theirs").unwrap();
        std::os::unix::fs::symlink(&other, dir.path().join("ledger.jsonl")).unwrap();
        let error = LineFile::open(dir.path(), "ledger.jsonl").err().unwrap();
        assert!(matches!(error, Error::Melm(melm::Error::Link { .. })), "{error}");
        assert_eq!(fs::read(&other).unwrap(), b"theirs");
    }
}
