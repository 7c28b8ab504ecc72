//! A run's folder: begun, gone on with, or done already; never another run's.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::Error;
use crate::files::write_whole;

/// Where a run keeps what it has not finished.
const WORK: &str = ".unfinished";
/// What a finished run says of itself.
const RECORD: &str = "run.json";

/// An output folder, and whether there is anything left to do in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunFolder {
    dir: PathBuf,
    key: String,
    /// What was found.
    pub found: Found,
}

/// What an output folder held of this very run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Found {
    /// Nothing: the run begins.
    Nothing,
    /// An earlier attempt, which is gone on with.
    Unfinished,
    /// All of it.
    Done,
}

impl RunFolder {
    /// Looks into `dir` for a run with this key, which stands for everything that can change its result; `force` begins
    /// anew over whatever is there. Nothing is changed before [`Self::begin`].
    pub fn open(dir: &Path, key: &str, force: bool) -> Result<Self, Error> {
        let found = if force { Found::Nothing } else { look(dir, key)? };
        Ok(Self { dir: dir.to_path_buf(), key: key.to_owned(), found })
    }

    /// The folder.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// Where a stage keeps its state.
    pub fn work(&self) -> PathBuf {
        self.dir.join(WORK)
    }

    /// Makes the folder this run's.
    pub fn begin(&self) -> Result<(), Error> {
        let failed = |source| Error::Write { path: self.dir.clone(), source };
        if self.found == Found::Nothing {
            for old in [self.dir.join(RECORD), self.work()] {
                let removed =
                    if old.is_dir() { fs::remove_dir_all(&old) } else { fs::remove_file(&old) };
                match removed {
                    Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                        return Err(failed(error));
                    }
                    _ => {}
                }
            }
            fs::create_dir_all(self.work()).map_err(failed)?;
            write_whole(&self.work().join("key"), self.key.as_bytes())?;
        }
        Ok(())
    }

    /// Writes the record, and removes what only an unfinished run needs.
    pub fn finish(&self, mut record: serde_json::Map<String, Value>) -> Result<(), Error> {
        record.insert("key".to_owned(), self.key.clone().into());
        let text = serde_json::to_string_pretty(&record).expect("a map of values is JSON");
        write_whole(&self.dir.join(RECORD), (text + "\n").as_bytes())?;
        match fs::remove_dir_all(self.work()) {
            Err(source) if source.kind() != std::io::ErrorKind::NotFound => {
                Err(Error::Write { path: self.work(), source })
            }
            _ => Ok(()),
        }
    }

    /// What a finished run says of itself.
    pub fn record(&self) -> Option<Value> {
        serde_json::from_str(&fs::read_to_string(self.dir.join(RECORD)).ok()?).ok()
    }
}

fn look(dir: &Path, key: &str) -> Result<Found, Error> {
    let occupied = |found| Err(Error::Occupied { dir: dir.to_path_buf(), found });
    if let Ok(begun) = fs::read_to_string(dir.join(WORK).join("key")) {
        return if begun == key {
            Ok(Found::Unfinished)
        } else {
            occupied("an unfinished run with other data or settings")
        };
    }
    if let Ok(record) = fs::read_to_string(dir.join(RECORD)) {
        let record: Option<Value> = serde_json::from_str(&record).ok();
        let is_same = record.is_some_and(|record| record.get("key").is_some_and(|k| k == key));
        return if is_same {
            Ok(Found::Done)
        } else {
            occupied("a run with other data or settings")
        };
    }
    // A run killed before it had written its key has done nothing else yet.
    let is_ours = |entry: std::io::Result<fs::DirEntry>| entry.is_ok_and(|e| e.file_name() == WORK);
    match fs::read_dir(dir).map(|mut entries| entries.all(is_ours)) {
        Ok(true) => Ok(Found::Nothing),
        Ok(false) => occupied("other files"),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Found::Nothing),
        Err(source) => Err(Error::Read { path: dir.to_path_buf(), source }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_belongs_to_one_run() {
        let parent = tempfile::tempdir().unwrap();
        let dir = parent.path().join("out");
        let open = |key: &str| RunFolder::open(&dir, key, false);
        let run = open("a").unwrap();
        assert_eq!(run.found, Found::Nothing);
        assert!(!dir.exists());
        run.begin().unwrap();
        assert_eq!(open("a").unwrap().found, Found::Unfinished);
        assert!(matches!(open("b"), Err(Error::Occupied { .. })));
        run.finish(serde_json::Map::new()).unwrap();
        assert_eq!(open("a").unwrap().found, Found::Done);
        assert!(matches!(open("b"), Err(Error::Occupied { .. })));
        let forced = RunFolder::open(&dir, "b", true).unwrap();
        forced.begin().unwrap();
        assert_eq!(open("b").unwrap().found, Found::Unfinished);
    }

    #[test]
    fn a_folder_of_something_else_is_left_alone() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(RunFolder::open(dir.path(), "a", false).unwrap().found, Found::Nothing);
        // What is left of a run that was killed in its first moment.
        fs::create_dir(dir.path().join(WORK)).unwrap();
        assert_eq!(RunFolder::open(dir.path(), "a", false).unwrap().found, Found::Nothing);
        fs::write(dir.path().join("thesis.tex"), "x").unwrap();
        assert!(matches!(RunFolder::open(dir.path(), "a", false), Err(Error::Occupied { .. })));
    }
}
