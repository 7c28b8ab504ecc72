//! Files written whole or not at all, and their fingerprints.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

use sha2::{Digest, Sha256};

use crate::Error;

/// Writes a file beside its final name and renames it: a reader never sees half of one.
pub fn write_whole(path: &Path, bytes: &[u8]) -> Result<(), Error> {
    // Always the same name: what a killed run leaves behind, the next one takes away.
    let temporary = with_suffix(path, ".part");
    fill(path, &temporary, File::create(&temporary), bytes)
}

/// The same for a file that several processes, of several machines too, may write at once: the last one wins, none fails. What a
/// killed run leaves behind stays.
pub fn write_shared(path: &Path, bytes: &[u8]) -> Result<(), Error> {
    static COUNT: AtomicUsize = AtomicUsize::new(0);
    loop {
        let (process, count) = (std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        let temporary = with_suffix(path, &format!(".{process}-{count}.part"));
        match File::create_new(&temporary) {
            // Another machine has a process of that number.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            file => return fill(path, &temporary, file, bytes),
        }
    }
}

fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}

fn fill(path: &Path, temporary: &Path, file: io::Result<File>, bytes: &[u8]) -> Result<(), Error> {
    let written = file.and_then(|mut file| {
        file.write_all(bytes)?;
        file.sync_all()
    });
    written.and_then(|()| fs::rename(temporary, path)).map_err(|source| {
        // An error here would hide the one that brought us here.
        let _ = fs::remove_file(temporary);
        Error::Write { path: path.to_path_buf(), source }
    })
}

/// SHA-256 of several texts or files in turn, as people compare it: in hexadecimal.
#[derive(Clone, Default)]
pub struct Fingerprint(Sha256);

impl Fingerprint {
    /// Takes in bytes, with their length, so that neighbours cannot be cut differently.
    pub fn add(&mut self, bytes: &[u8]) {
        self.0.update((bytes.len() as u64).to_le_bytes());
        self.0.update(bytes);
    }

    /// Takes in a file.
    pub fn add_file(&mut self, path: &Path) -> Result<(), Error> {
        let failed = |source: io::Error| Error::Read { path: path.to_path_buf(), source };
        let mut file = File::open(path).map_err(failed)?;
        let mut block = vec![0; 1 << 20];
        loop {
            match file.read(&mut block).map_err(failed)? {
                0 => return Ok(()),
                n => self.0.update(&block[..n]),
            }
        }
    }

    /// The fingerprint in hexadecimal.
    pub fn finish(self) -> String {
        self.0.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
    }
}

/// SHA-256 of a text, the number that `sha256sum` prints.
pub fn sha256(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fingerprint_of_a_text_is_the_one_of_sha256sum() {
        let expected = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(sha256(b"abc"), expected);
    }

    #[test]
    fn a_file_is_replaced_whole_and_leaves_nothing_beside_it() {
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
    fn many_may_write_one_file_at_once_and_a_reader_sees_it_whole() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a");
        let text = |writer: u8| vec![writer; 10_000];
        // As if another machine's process of this number were writing.
        let taken: Vec<_> = (0..64)
            .map(|count| with_suffix(&path, &format!(".{}-{count}.part", std::process::id())))
            .collect();
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
