//! The lock of an output folder, so that two processes do not write into it at the same time.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, ErrorKind, Read as _, Write as _};
use std::path::{Path, PathBuf};

use chrono::{DateTime, Utc};

use crate::Error;
use crate::files::create_folder;

/// The name of the lock file in an output folder.
pub(super) const LOCK: &str = ".lock";

/// The lock of an output folder. The operating system releases it when the process ends, also when it is killed. The
/// file is removed when the value is dropped.
#[derive(Debug)]
pub(crate) struct FolderLock {
    path: PathBuf,
    /// Holds the lock.
    _file: File,
}

impl FolderLock {
    /// Creates the folder if necessary, and locks it.
    ///
    /// # Errors
    /// [`Error::InUse`] if another process has the lock.
    pub(super) fn acquire(dir: &Path) -> Result<Self, Error> {
        create_folder(dir)?;
        let path = dir.join(LOCK);
        let failed = |source| Error::Write { path: path.clone(), source };
        loop {
            let mut file = open(&path).map_err(failed)?;
            match file.try_lock() {
                // Some network file systems have no locks.
                Err(TryLockError::Error(error)) if error.kind() == ErrorKind::Unsupported => {}
                Err(TryLockError::Error(source)) => return Err(failed(source)),
                Err(TryLockError::WouldBlock) => {
                    let other = describe(&mut file);
                    return Err(Error::InUse { dir: dir.to_path_buf(), other });
                }
                Ok(()) => {}
            }
            if is_at(&file, &path) {
                file.set_len(0).map_err(failed)?;
                file.write_all(std::process::id().to_string().as_bytes()).map_err(failed)?;
                return Ok(Self { path, _file: file });
            }
            // Another process ended and removed the file after it was opened here.
        }
    }
}

impl Drop for FolderLock {
    fn drop(&mut self) {
        // A file that cannot be removed does no harm: it is not locked any more.
        let _ = fs::remove_file(&self.path);
    }
}

/// Opens the lock file, or creates it. A link is removed, so that its target is not overwritten.
fn open(path: &Path) -> io::Result<File> {
    if fs::symlink_metadata(path).is_ok_and(|found| found.is_symlink()) {
        fs::remove_file(path)?;
    }
    OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path)
}

/// Returns false if another file, or no file, now has the path of an open file.
#[cfg(unix)]
fn is_at(file: &File, path: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;
    let id = |found: fs::Metadata| (found.dev(), found.ino());
    file.metadata().map(id).ok() == fs::metadata(path).map(id).ok()
}

/// An open file cannot be removed by another process.
#[cfg(not(unix))]
fn is_at(_: &File, _: &Path) -> bool {
    true
}

/// Describes the process that has the lock: its id, which it wrote into the file, and when it did so.
fn describe(file: &mut File) -> String {
    let mut process = String::new();
    let read = file.take(20).read_to_string(&mut process);
    let number = read.ok().and_then(|_| process.parse::<u32>().ok());
    let since = file.metadata().and_then(|found| found.modified()).map(DateTime::<Utc>::from);
    match (number, since) {
        (Some(number), Ok(since)) => {
            format!("process {number}, which started at {}", since.format("%Y-%m-%d %H:%M:%S UTC"))
        }
        _ => "another process".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_is_locked_until_the_lock_is_dropped() {
        let parent = tempfile::tempdir().unwrap();
        let dir = parent.path().join("out");
        let lock = FolderLock::acquire(&dir).unwrap();
        let error = FolderLock::acquire(&dir).unwrap_err().to_string();
        let process = format!("is in use by process {}, which started at 2", std::process::id());
        assert!(error.contains(&process) && error.contains(" UTC; wait"), "{error}");
        drop(lock);
        assert!(!dir.join(LOCK).exists());
        // The file of a killed process is not locked.
        fs::write(dir.join(LOCK), "999999").unwrap();
        FolderLock::acquire(&dir).unwrap();
    }

    #[cfg(unix)]
    #[test]
    fn the_target_of_a_link_is_not_overwritten() {
        let dir = tempfile::tempdir().unwrap();
        let other = dir.path().join("other");
        fs::write(&other, "theirs").unwrap();
        std::os::unix::fs::symlink(&other, dir.path().join(LOCK)).unwrap();
        let _lock = FolderLock::acquire(dir.path()).unwrap();
        assert_eq!(fs::read(&other).unwrap(), b"theirs");
    }

    /// Many threads take the lock in turn. Two of them never have it at the same time.
    #[test]
    fn only_one_holder_at_a_time() {
        use std::sync::atomic::{AtomicUsize, Ordering};
        let dir = tempfile::tempdir().unwrap();
        let (n_holders, n_taken) = (AtomicUsize::new(0), AtomicUsize::new(0));
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    while n_taken.load(Ordering::SeqCst) < 100 {
                        if let Ok(lock) = FolderLock::acquire(dir.path()) {
                            assert_eq!(n_holders.fetch_add(1, Ordering::SeqCst), 0);
                            n_taken.fetch_add(1, Ordering::SeqCst);
                            n_holders.fetch_sub(1, Ordering::SeqCst);
                            drop(lock);
                        }
                    }
                });
            }
        });
    }
}
