//! The output folder of a run. Recognises whether the run is new, unfinished or finished, and refuses folders with
//! other content.

mod finished;
mod identity;
mod lock;

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use melm_nn::files::{MAX_CONFIG_BYTES, read_text};
use melm_text::{Corpus, LabelledFile};
use serde_json::{Value, json};

use crate::Error;
use crate::files::{Fingerprint, create_folder, refuse_links, remove, sha256, write_whole};
pub use finished::FinishedRun;
pub(crate) use finished::checksums;
pub(crate) use identity::Identity;
pub(crate) use lock::FolderLock;
use lock::LOCK;

/// The subfolder with the state of an unfinished run.
const WORK: &str = ".unfinished";
/// The file in it with the key of the run.
const KEY: &str = "key";
/// The file in it that says what the key was made of.
const IDENTITY: &str = "identity.json";
/// The record of a finished run.
const RECORD: &str = "run.json";

/// An output folder, and its state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RunFolder {
    dir: PathBuf,
    identity: Identity,
    force: bool,
    /// The state of this run in the folder.
    pub state: FolderState,
}

/// The state of a run in its output folder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FolderState {
    /// The run has not started.
    New,
    /// The run was interrupted and will resume.
    Unfinished,
    /// The run is finished.
    Done,
}

impl RunFolder {
    /// Inspects `dir` for a run with this identity. With `force`, the run starts from the beginning, even if the folder has
    /// content. Nothing is changed on disk before [`Self::begin`].
    ///
    /// # Errors
    /// If `dir` is a file. Without `force`, if the folder contains another run or other files.
    pub(crate) fn open(dir: &Path, identity: Identity, force: bool) -> Result<Self, Error> {
        refuse_file(dir)?;
        let state = if force { FolderState::New } else { inspect(dir, &identity)? };
        Ok(Self { dir: dir.to_path_buf(), identity, force, state })
    }

    /// Returns true if `dir` contains this run, finished or not.
    pub(crate) fn is_also_in(&self, dir: &Path) -> bool {
        matches!(inspect(dir, &self.identity), Ok(FolderState::Unfinished | FolderState::Done))
    }

    /// The path of the folder.
    pub(crate) fn dir(&self) -> &Path {
        &self.dir
    }

    /// The folder for the state of the run's stages. It is removed when the run is finished.
    pub(crate) fn work(&self) -> PathBuf {
        self.dir.join(WORK)
    }

    /// Creates the folder, locks it, and removes `leftovers` and the state of an earlier run unless this run continues.
    /// Stores the identity of the run in the folder. The caller keeps the lock until the run ends.
    ///
    /// # Errors
    /// [`Error::InUse`] if another process uses the folder, or has changed it since [`Self::open`]. [`Error::Link`] if the
    /// state or a leftover of the run that continues is a link, or has one.
    pub(crate) fn begin(&self, leftovers: &[PathBuf]) -> Result<FolderLock, Error> {
        let lock = FolderLock::acquire(&self.dir)?;
        if !self.force && inspect(&self.dir, &self.identity)? != self.state {
            let other = "another process, which has just changed it".to_owned();
            return Err(Error::InUse { dir: self.dir.clone(), other });
        }
        let work = self.work();
        let mut folders = leftovers.iter().chain([&work]);
        if self.state == FolderState::New {
            // The record is removed first: without it, the other files are not taken for results.
            remove(&self.dir.join(RECORD))?;
            folders.try_for_each(|path| remove(path))?;
        } else {
            folders.try_for_each(|path| refuse_links(path))?;
        }
        if self.state != FolderState::Unfinished {
            // A finished run that continues, with more rounds, counts as unfinished until it has written its new results.
            create_folder(&work)?;
            let identity = serde_json::to_string(&self.identity).expect("an identity is JSON");
            write_whole(&work.join(IDENTITY), identity.as_bytes())?;
            write_whole(&work.join(KEY), self.identity.key().as_bytes())?;
        }
        Ok(lock)
    }

    /// Writes `run.json` and removes the state of the unfinished run.
    pub(crate) fn finish(&self, mut record: serde_json::Map<String, Value>) -> Result<(), Error> {
        record.insert("key".to_owned(), self.identity.key().into());
        record.insert("identity".to_owned(), json!(self.identity));
        let text = serde_json::to_string_pretty(&record).expect("a map of values is JSON");
        write_whole(&self.dir.join(RECORD), (text + "\n").as_bytes())?;
        // Without its key, a folder that cannot be removed does not make the run unfinished: see `tidy`.
        remove(&self.work().join(KEY))?;
        remove(&self.work())
    }

    /// Removes what a process that was stopped at its very end has left in the folder of a finished run: the state and
    /// the lock. Does nothing if another process uses the folder, or if the folder cannot be written to.
    pub(crate) fn tidy(&self) {
        let has_leftovers = self.work().exists() || self.dir.join(LOCK).exists();
        if self.state != FolderState::Done || !has_leftovers {
            return;
        }
        if let Ok(_lock) = FolderLock::acquire(&self.dir)
            && inspect(&self.dir, &self.identity).is_ok_and(|state| state == FolderState::Done)
        {
            // Files that cannot be removed do no harm.
            let _ = remove(&self.work());
        }
    }

    /// The content of `run.json`, if the folder has one.
    pub(crate) fn record(&self) -> Option<Value> {
        serde_json::from_str(&read_text(&self.dir.join(RECORD), MAX_CONFIG_BYTES).ok()?).ok()
    }
}

fn inspect(dir: &Path, identity: &Identity) -> Result<FolderState, Error> {
    let occupied = |found: &str, earlier: Option<Identity>| {
        let differences = earlier.and_then(|earlier| identity.describe_differences(&earlier));
        let differences = differences.map(|text| format!(": {text}")).unwrap_or_default();
        let found = format!("{found} with other data or settings{differences}");
        Err(Error::Occupied { dir: dir.to_path_buf(), found })
    };
    let work = dir.join(WORK);
    if let Ok(started) = read_text(&work.join(KEY), MAX_CONFIG_BYTES) {
        if started == identity.key() {
            return Ok(FolderState::Unfinished);
        }
        let earlier = read_text(&work.join(IDENTITY), MAX_CONFIG_BYTES).ok();
        let earlier = earlier.and_then(|text| serde_json::from_str(&text).ok());
        return occupied("an unfinished run", earlier);
    }
    if let Ok(record) = read_text(&dir.join(RECORD), MAX_CONFIG_BYTES) {
        let record: Value = serde_json::from_str(&record).unwrap_or_default();
        if record["key"] == identity.key() {
            return Ok(FolderState::Done);
        }
        return occupied("a run", serde_json::from_value(record["identity"].clone()).ok());
    }
    require_empty(dir)?;
    Ok(FolderState::New)
}

/// Fails if `dir` or a part of its path is a file.
fn refuse_file(dir: &Path) -> Result<(), Error> {
    let source = match fs::metadata(dir) {
        Ok(found) if !found.is_dir() => ErrorKind::NotADirectory.into(),
        Err(error) if error.kind() == ErrorKind::NotADirectory => error,
        _ => return Ok(()),
    };
    Err(Error::Write { path: dir.to_path_buf(), source })
}

/// Fails if a folder has content. A folder counts as empty if it does not exist, or if it has only the lock and the
/// subfolder of a run that was killed before it wrote its identity.
pub(crate) fn require_empty(dir: &Path) -> Result<(), Error> {
    refuse_file(dir)?;
    let is_ours = |entry: std::io::Result<fs::DirEntry>| {
        entry.is_ok_and(|e| e.file_name() == WORK || e.file_name() == LOCK)
    };
    match fs::read_dir(dir).map(|mut entries| entries.all(is_ours)) {
        Ok(true) => Ok(()),
        Ok(false) => Err(Error::Occupied { dir: dir.to_path_buf(), found: "other files".into() }),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        Err(source) => Err(Error::Read { path: dir.to_path_buf(), source }),
    }
}

/// A hash of the files, sentences and languages of a corpus.
pub(crate) fn data_fingerprint(corpus: &Corpus) -> String {
    let mut fingerprint = Fingerprint::default();
    for part in corpus.languages() {
        fingerprint.add(part.code.as_bytes());
    }
    for file in corpus.files() {
        fingerprint.add(&file.source().content());
    }
    // One file can give different corpora, because the columns to read can be chosen.
    for sentence in corpus.sentences() {
        for (token, tag) in sentence.tokens().iter().zip(sentence.tags()) {
            fingerprint.add(token.as_str().as_bytes());
            fingerprint.add(corpus.types().spell(*tag, corpus.scheme()).to_string().as_bytes());
        }
        fingerprint.add(&[]);
    }
    fingerprint.finish()
}

/// The entry of a corpus in `run.json`: an object, or a list with one object for each language.
pub(crate) fn data_record(corpus: &Corpus) -> Value {
    let record = |file: Option<&LabelledFile>, n_sentences: usize| match file {
        Some(file) => json!({
            "file": file.source().name(),
            "sha256": sha256(&file.source().content()),
            "sentences": n_sentences,
        }),
        None => json!({ "sha256": data_fingerprint(corpus), "sentences": n_sentences }),
    };
    let file = |at: usize| corpus.files().get(at).map(AsRef::as_ref);
    if corpus.languages().is_empty() {
        return record(file(0), corpus.sentences().len());
    }
    let parts = corpus.languages().iter().enumerate().map(|(at, part)| {
        let mut record = record(file(at), part.sentences.len());
        record["language"] = (*part.code).into();
        record
    });
    parts.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the identity of a run with this training set.
    fn run_on(data: &str) -> Identity {
        Identity::default().with_content("training set", data.to_owned())
    }

    #[test]
    fn a_folder_belongs_to_one_run() {
        let parent = tempfile::tempdir().unwrap();
        let dir = parent.path().join("out");
        let open = |key: &str| RunFolder::open(&dir, run_on(key), false);
        let run = open("a").unwrap();
        assert_eq!(run.state, FolderState::New);
        assert!(!dir.exists());
        drop(run.begin(&[]).unwrap());
        assert_eq!(open("a").unwrap().state, FolderState::Unfinished);
        let error = open("b").unwrap_err().to_string();
        let wanted = "an unfinished run with other data or settings: it had another training set;";
        assert!(error.contains(wanted), "{error}");
        run.finish(serde_json::Map::new()).unwrap();
        assert_eq!(open("a").unwrap().state, FolderState::Done);
        let error = open("b").unwrap_err().to_string();
        assert!(error.contains(" a run with other data or settings: it had another"), "{error}");
        let forced = RunFolder::open(&dir, run_on("b"), true).unwrap();
        drop(forced.begin(&[]).unwrap());
        assert_eq!(open("b").unwrap().state, FolderState::Unfinished);
    }

    #[test]
    fn a_file_is_not_an_output_folder() {
        let parent = tempfile::tempdir().unwrap();
        let file = parent.path().join("train.conll");
        fs::write(&file, "mine").unwrap();
        for (dir, force) in [(&file, false), (&file, true), (&file.join("out"), false)] {
            let error = RunFolder::open(dir, run_on("a"), force).unwrap_err();
            let is_refused = matches!(&error, Error::Write { path, source }
                if path == dir && source.kind() == ErrorKind::NotADirectory);
            assert!(is_refused, "{error:?}");
            assert!(error.cure().unwrap().contains("choose another folder"));
        }
        assert_eq!(fs::read_to_string(&file).unwrap(), "mine");
    }

    #[test]
    fn a_folder_that_another_process_uses_or_has_changed_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let open = || RunFolder::open(dir.path(), run_on("a"), false).unwrap();
        let (first, second) = (open(), open());
        let lock = first.begin(&[]).unwrap();
        assert!(matches!(second.begin(&[]), Err(Error::InUse { .. })));
        first.finish(serde_json::Map::new()).unwrap();
        drop(lock);
        assert!(matches!(second.begin(&[]), Err(Error::InUse { .. })));
        assert_eq!(open().state, FolderState::Done);
    }

    #[test]
    fn leftovers_of_a_finished_run_are_removed() {
        let dir = tempfile::tempdir().unwrap();
        let run = RunFolder::open(dir.path(), run_on("a"), false).unwrap();
        drop(run.begin(&[]).unwrap());
        run.finish(serde_json::Map::new()).unwrap();
        // These are left if a process is killed after it has written `run.json`.
        fs::create_dir(dir.path().join(WORK)).unwrap();
        fs::write(dir.path().join(WORK).join("state"), "x").unwrap();
        fs::write(dir.path().join(LOCK), "999999").unwrap();
        let again = RunFolder::open(dir.path(), run_on("a"), false).unwrap();
        assert_eq!(again.state, FolderState::Done);
        again.tidy();
        let names = fs::read_dir(dir.path()).unwrap().map(|entry| entry.unwrap().file_name());
        assert_eq!(names.collect::<Vec<_>>(), [RECORD]);
    }

    #[cfg(unix)]
    #[test]
    fn a_run_does_not_continue_through_links() {
        use std::os::unix::fs::symlink;
        let parent = tempfile::tempdir().unwrap();
        let (dir, other) = (parent.path().join("out"), parent.path().join("other"));
        let leftovers = [dir.join("stages")];
        let open = || RunFolder::open(&dir, run_on("a"), false).unwrap();
        drop(open().begin(&leftovers).unwrap());
        // The state of the unfinished run.
        fs::rename(dir.join(WORK), &other).unwrap();
        symlink(&other, dir.join(WORK)).unwrap();
        assert_eq!(open().state, FolderState::Unfinished);
        let refused = |path: PathBuf| {
            let error = open().begin(&leftovers).unwrap_err();
            assert!(matches!(error, Error::Link { path: found } if found == path));
        };
        refused(dir.join(WORK));
        fs::remove_file(dir.join(WORK)).unwrap();
        fs::rename(&other, dir.join(WORK)).unwrap();
        // A link deep in a leftover.
        fs::create_dir_all(leftovers[0].join("judge")).unwrap();
        symlink(parent.path(), leftovers[0].join("judge/link")).unwrap();
        refused(leftovers[0].join("judge/link"));
        fs::remove_file(leftovers[0].join("judge/link")).unwrap();
        drop(open().begin(&leftovers).unwrap());
        // A new run removes the link, and not what it leads to.
        fs::remove_dir_all(&leftovers[0]).unwrap();
        fs::create_dir(&other).unwrap();
        symlink(&other, &leftovers[0]).unwrap();
        let forced = RunFolder::open(&dir, run_on("b"), true).unwrap();
        drop(forced.begin(&leftovers).unwrap());
        assert!(other.is_dir() && fs::symlink_metadata(&leftovers[0]).is_err());
    }

    #[test]
    fn a_folder_of_something_else_is_left_alone() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(
            RunFolder::open(dir.path(), run_on("a"), false).unwrap().state,
            FolderState::New
        );
        // This is the state after a run was killed before it wrote its identity.
        fs::create_dir(dir.path().join(WORK)).unwrap();
        assert_eq!(
            RunFolder::open(dir.path(), run_on("a"), false).unwrap().state,
            FolderState::New
        );
        fs::write(dir.path().join("thesis.tex"), "x").unwrap();
        assert!(matches!(
            RunFolder::open(dir.path(), run_on("a"), false),
            Err(Error::Occupied { .. })
        ));
    }
}
