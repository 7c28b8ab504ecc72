//! Opens a tiny tagger whose `id2label` is arbitrary, and, after a NUL byte, its `tagger.json`. An opened tagger must tag a
//! sentence, or fail with an error.
#![no_main]

use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use melm::Tagger;
use melm_fuzz::{Folder, parts};
use melm_nn::config::Config;
use melm_nn::tagger::{HeadKind, TaggerSettings};

/// A tokenizer with seven pieces.
const TOKENIZER: &[u8] = br###"{"pre_tokenizer": {"type": "BertPreTokenizer"}, "model": {"type": "WordPiece", "unk_token": "[UNK]",
    "continuing_subword_prefix": "##", "max_input_chars_per_word": 100, "vocab": {"[PAD]": 0, "[UNK]": 1, "[CLS]": 2,
    "[SEP]": 3, "[MASK]": 4, "a": 5, "##b": 6}}}"###;
/// What the configuration of the tiny tagger has as `id2label`.
const NAMES: &str = r#"{"0":"O","1":"B-PER","2":"I-PER"}"#;

/// A folder with a tagger of three tags, and the configuration around `id2label`.
static TAGGER: LazyLock<(Folder, String)> = LazyLock::new(|| {
    let folder = Folder::new("taggers");
    let config = Config {
        vocab_size: 7,
        hidden_size: 4,
        n_layers: 1,
        n_heads: 1,
        intermediate_size: 4,
        max_position_embeddings: 12,
        ..Config::default()
    };
    let settings = TaggerSettings { n_tags: 3, kind: HeadKind::Crf, allowed: None };
    let names = ["O", "B-PER", "I-PER"].map(str::to_owned);
    let tagger = melm_nn::tagger::Tagger::random(&config, settings, 1).unwrap();
    tagger.save(folder.path(), &names).unwrap();
    folder.write("tokenizer.json", TOKENIZER);
    let path = folder.path().join("config.json");
    let text = std::fs::read_to_string(path).unwrap();
    let compact: String = text.split_whitespace().collect();
    assert!(compact.contains(NAMES), "{compact}");
    (folder, compact)
});

fuzz_target!(|bytes: &[u8]| {
    let [names, extra] = parts(bytes);
    let Ok(names) = std::str::from_utf8(names.unwrap_or_default()) else { return };
    let (folder, config) = &*TAGGER;
    folder.write("config.json", config.replace(NAMES, names).as_bytes());
    match extra {
        Some(extra) => folder.write("tagger.json", extra),
        None => drop(std::fs::remove_file(folder.path().join("tagger.json"))),
    }
    let Ok(tagger) = Tagger::open(folder.path()) else { return };
    if let Ok((tagged, _)) = tagger.find_tags(&[vec!["a", "ab", "x"]]) {
        assert_eq!(tagged[0].len(), 3);
    }
});
