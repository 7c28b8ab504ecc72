//! Reads arbitrary bytes as the identity of an earlier run, in the folder of an unfinished run and in `run.json` of a
//! finished one. The new run must be refused, and nothing may change.
#![no_main]

use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use melm::augment::AugmentJob;
use melm_fuzz::{Folder, without_model};

static JOB: LazyLock<AugmentJob> = LazyLock::new(|| without_model(1));
static UNFINISHED: LazyLock<Folder> = LazyLock::new(|| {
    let folder = Folder::new("identities");
    std::fs::create_dir_all(folder.path().join(".unfinished")).unwrap();
    folder.write(".unfinished/key", b"another run");
    folder
});
static FINISHED: LazyLock<Folder> = LazyLock::new(|| Folder::new("identities-finished"));

fuzz_target!(|bytes: &[u8]| {
    UNFINISHED.write(".unfinished/identity.json", bytes);
    let refused = JOB.open_folder(UNFINISHED.path(), false, false);
    assert!(refused.is_err_and(|error| error.to_string().contains("an unfinished run")));
    let record = [br#"{"key":"x","identity":"#, bytes, b"}"].concat();
    FINISHED.write("run.json", &record);
    let refused = JOB.open_folder(FINISHED.path(), false, false);
    assert!(refused.is_err_and(|error| error.to_string().contains("a run with other")));
});
