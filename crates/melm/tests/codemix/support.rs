//! Provides corpora in invented languages, and vectors for most of their words.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use flate2::Compression;
use flate2::write::GzEncoder;
use melm::codemix::Codemix;
use melm::draft::Draft;
use melm::random::{Generator, Seed, StreamKey};
use melm_text::{Corpus, ReadOptions, Source};

pub(crate) const CODES: [&str; 3] = ["aa", "bb", "cc"];
pub(crate) const DIMENSION: usize = 12;
/// The number of words in a language. Every seventh word has no vector.
const N_WORDS: usize = 120;

pub(crate) fn read(text: &str) -> Corpus {
    Corpus::read(&Source::from_text("a", text), &ReadOptions::default()).unwrap()
}

pub(crate) fn round(mix: &mut Codemix<'_>, key: StreamKey, round: u32) -> Vec<Draft> {
    mix.round(key, round, &mut |_, _| melm::stage::Control::Continue).unwrap()
}

pub(crate) fn generator(name: &str) -> Generator {
    Seed(7).stream(name).generator()
}

/// A corpus with a hundred sentences per language. Mentions have one to three words. Two entity types occur in all
/// languages, a third only in the first.
pub(crate) fn corpus() -> Corpus {
    let parts = CODES.map(|code| {
        let mut generator = generator(code);
        let mut text = String::new();
        for _ in 0..100 {
            text += "so O\n";
            for _ in 0..=generator.below(3) {
                let types = if code == "aa" { 3 } else { 2 };
                let name = ["PER", "LOC", "ODD"][generator.below(types)];
                for at in 0..=generator.below(3) {
                    let part = if at == 0 { 'B' } else { 'I' };
                    // Some words begin with a capital letter, but all vectors are for words in lower case.
                    let capital = if generator.below(2) == 0 { 'W' } else { 'w' };
                    writeln!(text, "{capital}{} {part}-{name}", generator.below(N_WORDS)).unwrap();
                }
                text += "so O\n";
            }
            text.push('\n');
        }
        read(&text)
    });
    Corpus::from_languages(CODES.into_iter().zip(&parts))
}

/// The vectors of a language by word.
pub(crate) fn table(code: &str) -> BTreeMap<String, Vec<f32>> {
    let mut generator = generator(&format!("vectors {code}"));
    let mut table = BTreeMap::new();
    for word in 0..N_WORDS {
        #[expect(clippy::cast_possible_truncation, reason = "any number will do")]
        let vector = (0..DIMENSION).map(|_| generator.normal() as f32).collect();
        if word % 7 != 0 {
            table.insert(format!("w{word}"), vector);
        }
    }
    table
}

/// Writes the vectors to files. The second file is compressed with gzip.
pub(crate) fn files(dir: &Path) -> Vec<(String, PathBuf)> {
    let write = |code: &str| {
        let table = table(code);
        let mut text = format!("{} {DIMENSION}\n", table.len());
        for (word, vector) in table {
            let numbers: Vec<_> = vector.iter().map(ToString::to_string).collect();
            writeln!(text, "{word} {}", numbers.join(" ")).unwrap();
        }
        let path = dir.join(code);
        if code == CODES[1] {
            let mut out =
                GzEncoder::new(std::fs::File::create(&path).unwrap(), Compression::fast());
            out.write_all(text.as_bytes()).unwrap();
            out.finish().unwrap();
        } else {
            std::fs::write(&path, text).unwrap();
        }
        (code.to_owned(), path)
    };
    CODES.map(write).to_vec()
}
