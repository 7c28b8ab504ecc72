//! Reads arbitrary bytes as a ledger, and writes the tables and the report of an accepted one.
#![no_main]

use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use melm_eval::table::{SelectedLines, Split, Table, csv, latex, markdown};
use melm_eval::{Ledger, PaperScores};
use melm_fuzz::Folder;
use melm_report::Report;

static FOLDER: LazyLock<Folder> = LazyLock::new(|| Folder::new("ledgers"));

fuzz_target!(|bytes: &[u8]| {
    FOLDER.write("ledger.jsonl", bytes);
    if Ledger::read(FOLDER.path()).is_err() {
        return;
    }
    if let Ok(selected) = SelectedLines::read(FOLDER.path(), &[], &[]) {
        for (_, table) in Table::NAMES {
            for split in [Split::Dev, Split::Test] {
                let rows = table.rows(&selected.lines, split, &PaperScores::new());
                let _ = (latex(&rows), markdown(&rows), csv(&[rows]));
            }
        }
    }
    if let Ok(report) = Report::read(FOLDER.path()) {
        let _ = (report.html(), report.json());
    }
});
