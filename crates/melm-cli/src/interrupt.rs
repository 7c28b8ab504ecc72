//! Ctrl-C: unfinished files are removed, and the exit code is 130. A training writes down where it is first.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

static UNFINISHED: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());
static IS_DEFERRED: AtomicBool = AtomicBool::new(false);
static IS_REQUESTED: AtomicBool = AtomicBool::new(false);

/// The shell's code for a command ended by SIGINT.
pub(crate) const INTERRUPTED: u8 = 130;

/// Takes over Ctrl-C. Where that is impossible the system's own handling stays.
pub(crate) fn install() {
    let _ = ctrlc::set_handler(|| {
        let is_first = !IS_REQUESTED.swap(true, Ordering::SeqCst);
        if is_first && IS_DEFERRED.load(Ordering::SeqCst) {
            return;
        }
        for path in UNFINISHED.lock().unwrap_or_else(PoisonError::into_inner).iter() {
            let _ = std::fs::remove_file(path);
        }
        std::process::exit(INTERRUPTED.into());
    });
}

/// While this lives, the first Ctrl-C only asks: see [`is_requested`]. The second does not wait.
pub(crate) struct Deferred(());

impl Deferred {
    pub(crate) fn begin() -> Self {
        IS_DEFERRED.store(true, Ordering::SeqCst);
        Self(())
    }
}

impl Drop for Deferred {
    fn drop(&mut self) {
        IS_DEFERRED.store(false, Ordering::SeqCst);
    }
}

/// Whether the user has asked to stop.
pub(crate) fn is_requested() -> bool {
    IS_REQUESTED.load(Ordering::SeqCst)
}

/// Has `path` removed if the command is interrupted.
pub(crate) fn begin(path: &Path) {
    UNFINISHED.lock().unwrap_or_else(PoisonError::into_inner).push(path.to_owned());
}

/// `path` is finished, or gone.
pub(crate) fn end(path: &Path) {
    UNFINISHED.lock().unwrap_or_else(PoisonError::into_inner).retain(|other| other != path);
}
