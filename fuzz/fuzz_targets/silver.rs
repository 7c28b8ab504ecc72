//! Reads arbitrary bytes as silver labels, and checks them against a training set.
#![no_main]

use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use melm::augment::Silver;
use melm_text::{Corpus, Encoding, ReadOptions, Source};

static TRAIN: LazyLock<Corpus> = LazyLock::new(melm_fuzz::train);

fuzz_target!(|bytes: &[u8]| {
    let Ok(source) = Source::from_bytes("silver".into(), bytes.to_vec(), Encoding::Utf8) else {
        return;
    };
    let Ok(corpus) = Corpus::read(&source, &ReadOptions::default()) else { return };
    let silver = Silver::new("fuzz", corpus);
    let is_strict = silver.check(&TRAIN);
    let dropped = silver.dropping_other_types().check(&TRAIN).expect("other types are dropped");
    // Without the option, a mention of another type is an error.
    assert_eq!(is_strict.is_ok(), dropped == 0);
});
