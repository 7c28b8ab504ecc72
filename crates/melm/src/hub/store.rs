//! Writes a model into the cache, in the layout of Python's `huggingface_hub`:
//!
//! ```text
//! .locks/models--OWNER--NAME/HASH.lock     held while a file is downloaded
//! models--OWNER--NAME/blobs/HASH           the content, named by its checksum
//! models--OWNER--NAME/blobs/HASH.incomplete
//! models--OWNER--NAME/snapshots/COMMIT/FILE -> ../../blobs/HASH
//! models--OWNER--NAME/refs/main            the commit, written last
//! ```

use std::fs::{self, File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};

use super::cache;
use super::checksum::Checksum;
use crate::Error;
use crate::files::write_shared;

/// One commit of one model in the cache.
pub(super) struct Snapshot {
    blobs: PathBuf,
    locks: PathBuf,
    refs: PathBuf,
    folder: PathBuf,
    commit: String,
}

impl Snapshot {
    /// Creates the folders of a snapshot. `commit` must be a plain file name.
    pub(super) fn create(cache: &Path, name: &str, commit: &str) -> Result<Self, Error> {
        let model = cache::model_folder(cache, name);
        let locks = cache.join(".locks").join(model.file_name().unwrap_or_default());
        let snapshot = Self {
            blobs: model.join("blobs"),
            locks,
            refs: model.join("refs"),
            folder: model.join("snapshots").join(commit),
            commit: commit.to_owned(),
        };
        for folder in [&snapshot.blobs, &snapshot.locks, &snapshot.refs, &snapshot.folder] {
            fs::create_dir_all(folder)
                .map_err(|source| Error::Write { path: folder.clone(), source })?;
        }
        Ok(snapshot)
    }

    /// Returns the folder with the files of the model.
    pub(super) fn folder(&self) -> &Path {
        &self.folder
    }

    /// Returns the path of a content.
    pub(super) fn blob(&self, checksum: &Checksum) -> PathBuf {
        self.blobs.join(checksum.as_str())
    }

    /// Returns the path of a content that is not yet complete.
    pub(super) fn incomplete_blob(&self, checksum: &Checksum) -> PathBuf {
        self.blobs.join(format!("{}.incomplete", checksum.as_str()))
    }

    /// Waits until no other process downloads this content, and calls `on_wait` before a wait. The lock ends when the
    /// returned file is dropped.
    pub(super) fn lock(&self, checksum: &Checksum, on_wait: impl FnOnce()) -> Result<File, Error> {
        let path = self.locks.join(format!("{}.lock", checksum.as_str()));
        let failed = |source| Error::Write { path: path.clone(), source };
        let file = File::options().create(true).append(true).open(&path).map_err(failed)?;
        let locked = match file.try_lock() {
            Ok(()) => Ok(()),
            Err(TryLockError::WouldBlock) => {
                on_wait();
                file.lock()
            }
            Err(TryLockError::Error(error)) => Err(error),
        };
        match locked {
            Ok(()) => Ok(file),
            // Some network file systems have no locks. If two processes then write the same file, its checksum is
            // wrong and it is downloaded again.
            Err(error) if error.kind() == io::ErrorKind::Unsupported => Ok(file),
            Err(source) => Err(failed(source)),
        }
    }

    /// Makes a complete content visible under the name of its file.
    pub(super) fn link(&self, file: &str, checksum: &Checksum) -> Result<(), Error> {
        let (path, blob) = (self.folder.join(file), self.blob(checksum));
        let is_same = |path: &Path| {
            fs::canonicalize(path)
                .ok()
                .zip(fs::canonicalize(&blob).ok())
                .is_some_and(|(a, b)| a == b)
        };
        if is_same(&path) {
            return Ok(());
        }
        // The name is prepared beside its place, so that another process never finds it missing.
        let prepared = self.folder.join(format!(".{file}.{}.link", std::process::id()));
        let target = Path::new("../../blobs").join(checksum.as_str());
        let placed = remove_if_present(&prepared)
            .and_then(|()| link_or_copy(&target, &blob, &prepared))
            .and_then(|()| fs::rename(&prepared, &path));
        placed.map_err(|source| {
            let _ = fs::remove_file(&prepared);
            Error::Write { path, source }
        })
    }

    /// Records that the snapshot is complete and is the newest one.
    pub(super) fn finish(&self) -> Result<(), Error> {
        write_shared(&self.refs.join("main"), self.commit.as_bytes())
    }
}

fn remove_if_present(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// Makes `path` a relative symbolic link to `target`. Where the file system or the user may not have symbolic links, as
/// on Windows, makes a hard link to `blob`, which is the same file, or else a copy.
fn link_or_copy(target: &Path, blob: &Path, path: &Path) -> io::Result<()> {
    symbolic_link(target, path)
        .or_else(|_| fs::hard_link(blob, path))
        .or_else(|_| fs::copy(blob, path).map(drop))
}

#[cfg(unix)]
fn symbolic_link(target: &Path, path: &Path) -> io::Result<()> {
    std::os::unix::fs::symlink(target, path)
}

#[cfg(windows)]
fn symbolic_link(target: &Path, path: &Path) -> io::Result<()> {
    std::os::windows::fs::symlink_file(target, path)
}

#[cfg(not(any(unix, windows)))]
fn symbolic_link(_: &Path, _: &Path) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}
