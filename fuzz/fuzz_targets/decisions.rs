//! Reads arbitrary text as the decisions of a person, and applies them to two drafts.
#![no_main]

use std::path::Path;
use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use melm::draft::{Decisions, read_lines};
use melm_text::Corpus;

static TRAIN: LazyLock<Corpus> = LazyLock::new(melm_fuzz::train);
/// Two drafts, and a sentence of unlabelled text.
const DRAFTS: &str = include_str!("../seeds/drafts/three.jsonl");

fuzz_target!(|text: &str| {
    let Ok(decisions) = Decisions::read(Path::new("decisions.jsonl"), text) else { return };
    let mut lines = read_lines(Path::new("drafts.jsonl"), DRAFTS, &TRAIN).unwrap();
    if let Ok(applied) = decisions.apply(&mut lines, DRAFTS) {
        assert!(applied.accepted + applied.rejected <= lines.drafts.len() + lines.text.len());
        assert!(applied.added <= applied.accepted && applied.removed <= applied.rejected);
    }
});
