//! Reads arbitrary bytes as CoNLL. If they are accepted, writing the sentences and reading them again must give the
//! same sentences.
#![no_main]

use libfuzzer_sys::fuzz_target;
use melm_text::{Corpus, Encoding, Format, ReadOptions, Source};

/// Returns the tokens and tags of each sentence as text.
fn spelled(corpus: &Corpus) -> Vec<Vec<(String, String)>> {
    let spell = |tag| corpus.types().spell(tag, corpus.scheme()).to_string();
    let sentences = corpus.sentences().iter();
    sentences
        .map(|s| {
            let tags = s.tags().iter().map(|&tag| spell(tag));
            s.tokens().iter().map(ToString::to_string).zip(tags).collect()
        })
        .collect()
}

fuzz_target!(|bytes: &[u8]| {
    let Ok(source) = Source::from_bytes("fuzz".into(), bytes.to_vec(), Encoding::Utf8) else {
        return;
    };
    let options = ReadOptions { format: Some(Format::CONLL), ..ReadOptions::default() };
    let Ok(corpus) = Corpus::read(&source, &options) else { return };
    let mut out = Vec::new();
    corpus.write_conll(&mut out).unwrap();
    let again = Source::from_bytes("again".into(), out, Encoding::Utf8).unwrap();
    assert_eq!(spelled(&Corpus::read(&again, &options).unwrap()), spelled(&corpus));
});
