//! Reads arbitrary text as lines of `gold.jsonl`, and ranks the accepted sentences.
#![no_main]

use libfuzzer_sys::fuzz_target;
use melm::gold_check::{GoldCheckSummary, rank, read_line};

fuzz_target!(|text: &str| {
    let checked: Vec<_> = text.lines().filter_map(|line| read_line(line).ok()).collect();
    let suspects = rank(&checked);
    assert!(suspects.iter().all(|one| one.is_suspect()));
    let summary = GoldCheckSummary::new(4, &checked);
    assert_eq!((summary.sentences, summary.suspect), (checked.len(), suspects.len()));
    assert!(summary.f1.is_nan() || (0.0..=1.0).contains(&summary.f1));
});
