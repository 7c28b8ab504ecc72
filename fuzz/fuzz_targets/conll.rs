//! Any bytes: read or refused; what is read is written and read again to the same.
#![no_main]

use libfuzzer_sys::fuzz_target;
use melm_text::{Corpus, Encoding, Format, ReadOptions, Source};

fuzz_target!(|bytes: &[u8]| {
    let Ok(source) = Source::from_bytes("fuzz".into(), bytes.to_vec(), Encoding::Utf8) else {
        return;
    };
    let options = ReadOptions { format: Some(Format::Conll), ..ReadOptions::default() };
    let Ok(corpus) = Corpus::read(&source, &options) else { return };
    let mut out = Vec::new();
    corpus.write_conll(&mut out).unwrap();
    let again = Source::from_bytes("again".into(), out.clone(), Encoding::Utf8).unwrap();
    let corpus = Corpus::read(&again, &options).unwrap();
    let mut twice = Vec::new();
    corpus.write_conll(&mut twice).unwrap();
    assert_eq!(out, twice);
});
