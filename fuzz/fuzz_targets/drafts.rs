//! Reads arbitrary text as `drafts.jsonl`. Drafts that are accepted must be the same after they were written and read
//! again. The ids of the lines must be known, so that decisions can name them.
#![no_main]

use std::path::Path;
use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use melm::draft::{Decisions, read_lines, to_lines};
use melm_text::Corpus;

static TRAIN: LazyLock<Corpus> = LazyLock::new(melm_fuzz::train);

fuzz_target!(|text: &str| {
    let path = Path::new("drafts.jsonl");
    let Ok(mut found) = read_lines(path, text, &TRAIN) else { return };
    let written = to_lines(&found.drafts, &TRAIN);
    let again = read_lines(path, &written, &TRAIN).expect("our own drafts can be read");
    // Numbers can change in their last digit when JSON is read, so the texts are compared.
    assert_eq!(to_lines(&again.drafts, &TRAIN).lines().count(), found.drafts.len());
    for (one, other) in again.drafts.iter().zip(&found.drafts) {
        assert_eq!(one.sentence, other.sentence);
    }
    let none = Decisions::read(path, "").unwrap();
    let _ = none.apply(&mut found, text);
});
