//! Ctrl-C: unfinished files are removed, and the exit code is 130.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

static UNFINISHED: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

/// The shell's code for a command ended by SIGINT.
const INTERRUPTED: i32 = 130;

/// Takes over Ctrl-C. Where that is impossible the system's own handling stays.
pub(crate) fn install() {
    let _ = ctrlc::set_handler(|| {
        for path in UNFINISHED.lock().unwrap_or_else(PoisonError::into_inner).iter() {
            let _ = std::fs::remove_file(path);
        }
        std::process::exit(INTERRUPTED);
    });
}

/// Has `path` removed if the command is interrupted.
pub(crate) fn begin(path: &Path) {
    UNFINISHED.lock().unwrap_or_else(PoisonError::into_inner).push(path.to_owned());
}

/// `path` is finished, or gone.
pub(crate) fn end(path: &Path) {
    UNFINISHED.lock().unwrap_or_else(PoisonError::into_inner).retain(|other| other != path);
}
