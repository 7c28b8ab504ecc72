//! Opens arbitrary bytes as `vocab.txt` and, after a NUL byte, `tokenizer_config.json` of an old BERT model. An opened
//! tokenizer must encode every token or fail with an error, and its ids must be in its vocabulary.
#![no_main]

use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use melm::pieces::Tokenizer;
use melm_fuzz::{Folder, parts};

static FOLDER: LazyLock<Folder> = LazyLock::new(|| Folder::new("vocabularies"));

fuzz_target!(|bytes: &[u8]| {
    let [vocabulary, config] = parts(bytes);
    FOLDER.write("vocab.txt", vocabulary.unwrap_or_default());
    FOLDER.write("tokenizer_config.json", config.unwrap_or(b"{}"));
    let Ok(tokenizer) = Tokenizer::open(FOLDER.path()) else { return };
    for token in ["ab", "Köln", "", "[MASK]", "中a", "aaaaaaaaaaaaaaaa"] {
        let Ok(encoded) = tokenizer.encode(&[token]) else { continue };
        assert!(encoded.pieces.iter().all(|&id| (id as usize) < tokenizer.n_pieces()));
        let _ = tokenizer.decode(&encoded.pieces);
    }
});
