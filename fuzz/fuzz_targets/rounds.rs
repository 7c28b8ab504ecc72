//! Reads arbitrary bytes as the saved first round of a run, with the right checksum: drafts and, after a NUL byte, the
//! counts of dropped sentences. The run makes the second round, or fails with an error.
#![no_main]

use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use melm::augment::AugmentJob;
use melm::files::sha256;
use melm::stage::ignore_events;
use melm_fuzz::{Folder, parts, without_model};

static JOB: LazyLock<AugmentJob> = LazyLock::new(|| without_model(2));
/// The folder of a finished run with one round.
static FOLDER: LazyLock<Folder> = LazyLock::new(|| {
    let folder = Folder::new("rounds");
    let job = without_model(1);
    let run = job.open_folder(folder.path(), false, false).unwrap();
    run.run(&mut ignore_events, &|| 0.0).unwrap();
    folder
});

fuzz_target!(|bytes: &[u8]| {
    let [lines, dropped] = parts(bytes);
    let (lines, dropped) = (lines.unwrap_or_default(), dropped.unwrap_or_default());
    let rounds = FOLDER.path().join(".stages/rounds");
    for file in ["round-2.jsonl", "round-2.sha256", "round-1.dropped.toml"] {
        let _ = std::fs::remove_file(rounds.join(file));
    }
    FOLDER.write(".stages/rounds/round-1.jsonl", lines);
    if !dropped.is_empty() {
        FOLDER.write(".stages/rounds/round-1.dropped.toml", dropped);
    }
    let sum = sha256(&[lines, dropped].concat());
    FOLDER.write(".stages/rounds/round-1.sha256", sum.as_bytes());
    let run = JOB.open_folder(FOLDER.path(), false, false).expect("it is the folder of this run");
    let _ = run.run(&mut ignore_events, &|| 0.0);
});
