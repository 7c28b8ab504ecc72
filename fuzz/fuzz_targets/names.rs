//! Reads arbitrary bytes as a list of names. No line may be lost: each one is used or counted as left out.
#![no_main]

use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use melm::names::{NameList, Names};
use melm_text::{Corpus, TextFormat, TextOptions, UnlabelledText};

static TRAIN: LazyLock<Corpus> = LazyLock::new(melm_fuzz::train);

fuzz_target!(|bytes: &[u8]| {
    let options = TextOptions { format: Some(TextFormat::Plain), ..TextOptions::default() };
    let Ok(text) = UnlabelledText::read("names.txt", bytes, &options) else { return };
    let list = NameList::from_text("LOC", &text);
    let Ok(names) = Names::new(&[list], &TRAIN) else { return };
    let counts = &names.counts()[0];
    assert!(counts.names > 0 && counts.in_gold <= counts.names);
    let lines: std::collections::BTreeSet<_> =
        text.sentences().iter().map(|sentence| sentence.line()).collect();
    assert_eq!(counts.names + counts.repeated + counts.contradicted, lines.len());
});
