//! Prints the fingerprints that commit 399eea7 computes for data and word vectors.
//!
//!     cargo run --example old_data CONLL VECTORS > fingerprints.txt
//!
//! Lines of `LANGUAGE SPLIT FINGERPRINT`, then `vectors FINGERPRINT`.

use std::path::{Path, PathBuf};

use melm::codemix::Vectors;
use melm::files::Fingerprint;
use melm_text::{Corpus, Encoding, ReadOptions, Source};

fn main() {
    let args: Vec<String> = std::env::args().collect();
    let languages = ["de", "en", "es", "nl"];
    let mut train = Vec::new();
    for language in languages {
        for split in ["train", "dev", "test"] {
            let path = Path::new(&args[1]).join(language).join(format!("{split}.conll"));
            let source = Source::open(&path, Encoding::default()).unwrap();
            let options = ReadOptions::default();
            let mut fingerprint = Fingerprint::default();
            fingerprint.add(source.text().as_bytes());
            fingerprint.add(format!("{options:?}").as_bytes());
            println!("{language} {split} {}", fingerprint.finish());
            if split == "train" {
                train.push(Corpus::read(&source, &options).unwrap());
            }
        }
    }
    let corpus = Corpus::of_languages(languages.into_iter().zip(&train));
    let file = |code: &str| {
        (code.to_owned(), PathBuf::from(format!("{}/europarl.{code}.vec.gz", args[2])))
    };
    let files: Vec<_> = languages.into_iter().map(file).collect();
    let vectors = Vectors::read(&corpus, &files, &mut |_, _| {}).unwrap();
    let mut fingerprint = Fingerprint::default();
    vectors.add_to(&corpus, &mut fingerprint);
    println!("vectors {}", fingerprint.finish());
}
