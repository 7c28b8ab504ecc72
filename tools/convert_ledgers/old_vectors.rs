//! Prints the fingerprint that commit 399eea7 computes for the word vectors of the grid `multi`.
//!
//!     cargo run --example old_vectors CONLL VECTORS

use std::path::{Path, PathBuf};

use melm::codemix::Vectors;
use melm::files::Fingerprint;
use melm_text::{Corpus, Encoding, ReadOptions, Source};

fn main() {
    let args: Vec<String> = std::env::args().collect();
    let languages = ["de", "en", "es", "nl"];
    let read = |language: &str| {
        let path = Path::new(&args[1]).join(language).join("train.conll");
        let source = Source::open(&path, Encoding::default()).unwrap();
        Corpus::read(&source, &ReadOptions::default()).unwrap()
    };
    let train: Vec<_> = languages.into_iter().map(read).collect();
    let corpus = Corpus::of_languages(languages.into_iter().zip(&train));
    let file = |code: &str| {
        (code.to_owned(), PathBuf::from(format!("{}/europarl.{code}.vec.gz", args[2])))
    };
    let files: Vec<_> = languages.into_iter().map(file).collect();
    let vectors = Vectors::read(&corpus, &files, &mut |_, _| {}).unwrap();
    let mut fingerprint = Fingerprint::default();
    vectors.add_to(&corpus, &mut fingerprint);
    println!("{}", fingerprint.finish());
}
