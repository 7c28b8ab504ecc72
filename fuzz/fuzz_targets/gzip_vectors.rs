//! Reads arbitrary bytes as a gzip file of word vectors. An even first byte gives a whole file. An odd one gives the text
//! of a valid file. Accepted vectors must have finite numbers.
#![no_main]

use std::io::Write;
use std::sync::LazyLock;

use flate2::Compression;
use flate2::write::GzEncoder;
use libfuzzer_sys::fuzz_target;
use melm::codemix::MentionVectors;
use melm_fuzz::Folder;
use melm_text::Corpus;

/// The first two bytes of a gzip file.
const GZIP: [u8; 2] = [0x1f, 0x8b];

static FOLDER: LazyLock<Folder> = LazyLock::new(|| Folder::new("gzip_vectors"));
static TRAIN_IN_ENGLISH: LazyLock<Corpus> = LazyLock::new(|| {
    let train = melm_fuzz::train();
    Corpus::from_languages([("en", &train)])
});

fuzz_target!(|bytes: &[u8]| {
    let [kind, rest @ ..] = bytes else { return };
    let file = if kind % 2 == 0 {
        [&GZIP[..], rest].concat()
    } else {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
        encoder.write_all(rest).unwrap();
        encoder.finish().unwrap()
    };
    FOLDER.write("a.vec.gz", &file);
    let files = [("en".to_owned(), FOLDER.path().join("a.vec.gz"))];
    let Ok(vectors) = MentionVectors::read(&TRAIN_IN_ENGLISH, &files, &mut |_, _| {}) else {
        return;
    };
    for word in ["Ada", "Lovelace", "Bonn"] {
        let vector = vectors.get("en", word).unwrap_or_default();
        assert!(vector.iter().all(|number| number.is_finite()));
    }
});
