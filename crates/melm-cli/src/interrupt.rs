//! Handles Ctrl-C. Removes unfinished files and exits with code 130, or lets a long stage save its state first.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

static UNFINISHED: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());
static IS_DEFERRED: AtomicBool = AtomicBool::new(false);
static IS_REQUESTED: AtomicBool = AtomicBool::new(false);

/// The exit code that shells use for a command ended by SIGINT.
pub const INTERRUPTED: u8 = 130;

/// Installs the handler for Ctrl-C. If this fails, the default handler of the operating system stays.
pub(crate) fn install() {
    let _ = ctrlc::set_handler(|| {
        let is_first = !IS_REQUESTED.swap(true, Ordering::SeqCst);
        if is_first && IS_DEFERRED.load(Ordering::SeqCst) {
            return;
        }
        // The lock is held until the process ends, so that no thread creates another file meanwhile.
        let unfinished = UNFINISHED.lock().unwrap_or_else(PoisonError::into_inner);
        for path in unfinished.iter() {
            let _ = std::fs::remove_file(path);
        }
        std::process::exit(INTERRUPTED.into());
    });
}

/// While a value of this type exists, the first Ctrl-C does not exit but makes [`is_requested`] true. The second one
/// exits at once.
pub(crate) struct DeferInterrupt(());

impl DeferInterrupt {
    pub(crate) fn new() -> Self {
        IS_DEFERRED.store(true, Ordering::SeqCst);
        Self(())
    }
}

impl Drop for DeferInterrupt {
    fn drop(&mut self) {
        IS_DEFERRED.store(false, Ordering::SeqCst);
    }
}

/// Returns true if the user has pressed Ctrl-C.
pub(crate) fn is_requested() -> bool {
    IS_REQUESTED.load(Ordering::SeqCst)
}

/// Creates a file and marks the file as unfinished. Unfinished files are removed if the command is interrupted. The
/// handler of Ctrl-C waits until the new file is marked.
pub(crate) fn create_tracked<T>(
    path: &Path,
    create: impl FnOnce() -> io::Result<T>,
) -> io::Result<T> {
    let mut unfinished = UNFINISHED.lock().unwrap_or_else(PoisonError::into_inner);
    let created = create()?;
    unfinished.push(path.to_owned());
    Ok(created)
}

/// Marks a file as finished or removed.
pub(crate) fn untrack(path: &Path) {
    UNFINISHED.lock().unwrap_or_else(PoisonError::into_inner).retain(|other| other != path);
}
