//! Writes files completely or not at all, and computes their hashes.

use std::io::{self, Read, Write};
use std::path::Path;

use melm_nn::files::{UnfinishedFile, open_regular, read_bytes};
use sha2::{Digest, Sha256};

use crate::Error;

/// The largest file of a run or an experiment that is read as a whole: drafts, rounds, votes, metrics, ledgers and shards.
/// Four million drafts have about this size. Larger runs can be divided.
pub const MAX_RUN_FILE: u64 = 4 << 30;

/// Replaces a file atomically: a reader sees the old content or the new content, never a part. No other process may
/// write the file at the same time.
pub(crate) fn write_whole(path: &Path, bytes: &[u8]) -> Result<(), Error> {
    write_and_finish(UnfinishedFile::create(path), path, bytes)
}

/// Replaces a file atomically. Several processes, also on several machines, may write the file at the same time: the
/// last one wins, and none fails.
pub fn write_shared(path: &Path, bytes: &[u8]) -> Result<(), Error> {
    write_and_finish(UnfinishedFile::create_shared(path), path, bytes)
}

fn write_and_finish(
    file: io::Result<UnfinishedFile>,
    path: &Path,
    bytes: &[u8],
) -> Result<(), Error> {
    let written = file.and_then(|mut file| {
        file.write_all(bytes)?;
        file.finish()
    });
    written.map_err(|source| Error::Write { path: path.to_path_buf(), source })
}

/// Creates a folder and its missing parents.
pub(crate) fn create_folder(dir: &Path) -> Result<(), Error> {
    melm_nn::files::create_folder(dir)
        .map_err(|source| Error::Write { path: dir.to_path_buf(), source })
}

/// Removes a file, or a folder with its content. Does nothing if there is none. Of a link, only the link is removed.
pub(crate) fn remove(path: &Path) -> Result<(), Error> {
    let is_folder = std::fs::symlink_metadata(path).is_ok_and(|found| found.is_dir());
    let removed =
        if is_folder { std::fs::remove_dir_all(path) } else { std::fs::remove_file(path) };
    match removed {
        Err(source) if source.kind() != io::ErrorKind::NotFound => {
            Err(Error::Write { path: path.to_path_buf(), source })
        }
        _ => Ok(()),
    }
}

/// Fails if `path` is a link, or a folder with a link at any depth: what is written there would be written outside of the
/// folder of a run. Does nothing if there is no such path.
///
/// # Errors
/// [`Error::Link`], or [`Error::Read`] if a folder cannot be read.
pub fn refuse_links(path: &Path) -> Result<(), Error> {
    if std::fs::symlink_metadata(path).is_ok_and(|found| found.is_symlink()) {
        return Err(Error::Link { path: path.to_path_buf() });
    }
    let entries = match std::fs::read_dir(path) {
        Ok(entries) => entries,
        Err(error) => match error.kind() {
            io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => return Ok(()),
            _ => return Err(Error::Read { path: path.to_path_buf(), source: error }),
        },
    };
    for entry in entries {
        let failed = |source| Error::Read { path: path.to_path_buf(), source };
        refuse_links(&entry.map_err(failed)?.path())?;
    }
    Ok(())
}

/// Returns the number of bytes of the files in a folder. Files that cannot be read are left out.
pub(crate) fn folder_size(dir: &Path) -> u64 {
    let entries = std::fs::read_dir(dir).into_iter().flatten().flatten();
    let size = |entry: std::fs::DirEntry| match entry.metadata() {
        Ok(found) if found.is_dir() => folder_size(&entry.path()),
        Ok(found) => found.len(),
        Err(_) => 0,
    };
    entries.map(size).sum()
}

/// Replaces a file of JSON lines atomically, and adds a line with the SHA-256 of the others.
pub(crate) fn write_sealed(path: &Path, lines: &str) -> Result<(), Error> {
    let seal = seal_line(&sha256(lines.as_bytes()));
    write_whole(path, (lines.to_owned() + &seal).as_bytes())
}

/// Reads a file that [`write_sealed`] wrote, without its seal. Returns `None` if there is no such file.
///
/// # Errors
/// [`Error::DamagedStage`] if the file was changed.
pub(crate) fn read_sealed(path: &Path) -> Result<Option<String>, Error> {
    let text = match read_bytes(path, MAX_RUN_FILE) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(source) => return Err(Error::Read { path: path.to_path_buf(), source }),
    };
    let len = text.len().saturating_sub(seal_line(&sha256(b"")).len());
    let (lines, seal) = text.split_at(len);
    let lines = std::str::from_utf8(lines).ok();
    let lines = lines.filter(|lines| seal == seal_line(&sha256(lines.as_bytes())).as_bytes());
    let damaged = || Error::DamagedStage { path: path.to_path_buf() };
    lines.map(|lines| Some(lines.to_owned())).ok_or_else(damaged)
}

fn seal_line(digest: &str) -> String {
    format!("{{\"sha256\":\"{digest}\"}}\n")
}

/// A SHA-256 hash over several texts or files in sequence.
#[derive(Clone, Default)]
pub struct Fingerprint(Sha256);

impl Fingerprint {
    /// Adds bytes and their length. Because of the length, `ab` and `c` give a different hash from `a` and `bc`.
    pub fn add(&mut self, bytes: &[u8]) {
        self.0.update((bytes.len() as u64).to_le_bytes());
        self.0.update(bytes);
    }

    /// Adds the content of a file that is in memory, as [`Self::add_file`] does for a file on disk.
    pub(crate) fn add_content(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    /// Adds the content of a regular file.
    pub(crate) fn add_file(&mut self, path: &Path) -> Result<(), Error> {
        let failed = |source: io::Error| Error::Read { path: path.to_path_buf(), source };
        let mut file = open_regular(path).map_err(failed)?;
        let mut block = vec![0; 1 << 20];
        loop {
            match file.read(&mut block).map_err(failed)? {
                0 => return Ok(()),
                n => self.0.update(&block[..n]),
            }
        }
    }

    /// Returns the hash in hexadecimal.
    pub fn finish(self) -> String {
        self.0.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
    }
}

/// Returns the SHA-256 hash of bytes in hexadecimal, as `sha256sum` prints it.
pub fn sha256(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn sha256_agrees_with_sha256sum() {
        let expected = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(sha256(b"abc"), expected);
    }

    #[test]
    fn a_changed_sealed_file_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("metrics.jsonl");
        assert_eq!(read_sealed(&path).unwrap(), None);
        for lines in ["", "{\"loss\":1.5}\n"] {
            write_sealed(&path, lines).unwrap();
            assert_eq!(read_sealed(&path).unwrap().as_deref(), Some(lines));
            let whole = fs::read(&path).unwrap();
            for at in 0..whole.len() {
                let mut flipped = whole.clone();
                flipped[at] ^= 1 << (at % 8);
                fs::write(&path, &flipped).unwrap();
                assert!(matches!(read_sealed(&path), Err(Error::DamagedStage { .. })), "{at}");
                fs::write(&path, &whole[..at]).unwrap();
                assert!(matches!(read_sealed(&path), Err(Error::DamagedStage { .. })), "{at}");
            }
        }
    }

    #[test]
    fn writing_replaces_a_file_and_removes_the_temporary_file() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a");
        for text in ["long text", "short"] {
            write_whole(&path, text.as_bytes()).unwrap();
            assert_eq!(fs::read_to_string(&path).unwrap(), text);
        }
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
        assert!(write_whole(&dir.path().join("no/such"), b"").is_err());
    }

    #[test]
    fn several_threads_can_write_one_file_and_readers_see_it_complete() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a");
        let text = |writer: u8| vec![writer; 10_000];
        // These stand for temporary files of a process on another machine that has the same process id.
        let process = std::process::id();
        let taken: Vec<_> =
            (0..64).map(|count| dir.path().join(format!("a.{process}-{count}.part"))).collect();
        for other in &taken {
            fs::write(other, "theirs").unwrap();
        }
        write_shared(&path, &text(0)).unwrap();
        std::thread::scope(|scope| {
            for writer in 0..4 {
                let path = &path;
                scope.spawn(move || {
                    for _ in 0..50 {
                        write_shared(path, &text(writer)).unwrap();
                        let seen = fs::read(path).unwrap();
                        assert_eq!(seen, text(seen[0]));
                    }
                });
            }
        });
        assert!(taken.iter().all(|other| fs::read(other).unwrap() == b"theirs"));
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1 + taken.len());
    }
}
