//! Reads arbitrary bytes as the files of a finished run, and writes its report. NUL bytes separate `run.json`,
//! `drafts.jsonl`, `gold.jsonl`, `metrics.jsonl` and `train.augmented.conll`.
#![no_main]

use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use melm_fuzz::{Folder, TRAIN, parts};
use melm_report::Report;

static FOLDER: LazyLock<Folder> = LazyLock::new(|| Folder::new("runs"));

fuzz_target!(|bytes: &[u8]| {
    let [run, drafts, gold, metrics, train] = parts(bytes);
    FOLDER.write("run.json", run.unwrap_or_default());
    FOLDER.write("drafts.jsonl", drafts.unwrap_or_default());
    FOLDER.write("gold.jsonl", gold.unwrap_or_default());
    FOLDER.write("metrics.jsonl", metrics.unwrap_or_default());
    FOLDER.write("train.augmented.conll", train.unwrap_or(TRAIN.as_bytes()));
    if let Ok(report) = Report::read(FOLDER.path()) {
        let _ = report.json();
        let page = report.html();
        // The page has two script elements: the data and the script.
        assert_eq!(page.to_lowercase().matches("<script").count(), 2);
    }
});
