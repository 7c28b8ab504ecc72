//! Tests damaged, unsupported and malicious `tokenizer.json` files.

use melm::Error;
use melm::pieces::{Tokenizer, TokenizerFiles};
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::{repository, testdata};

fn open(text: String) -> Result<Tokenizer, Error> {
    Tokenizer::from_files(TokenizerFiles { tokenizer: text, ..TokenizerFiles::default() })
}

fn read_json(name: &str) -> String {
    std::fs::read_to_string(testdata(name).join("tokenizer.json")).unwrap()
}

/// Edits the file of a tiny tokenizer and returns the error from opening it.
fn error_after(name: &str, edit: impl FnOnce(&mut Value)) -> Error {
    let mut parts = serde_json::from_str(&read_json(name)).unwrap();
    edit(&mut parts);
    open(parts.to_string()).err().expect("the tokenizer is damaged")
}

#[test]
fn the_error_for_a_folder_without_a_tokenizer_has_a_hint() {
    let dir = tempfile::tempdir().unwrap();
    let error = Tokenizer::open(dir.path()).err().unwrap();
    assert!(matches!(error, Error::NoTokenizer { .. }), "{error}");
    assert!(error.to_string().contains("save_pretrained"), "{error}");
}

#[test]
fn json_without_a_tokenizer_is_refused() {
    for text in ["", "{}", "[]", "null", "{\"model\": 3}", "{\"model\": {}"] {
        let error = open(text.to_owned()).err().unwrap();
        assert!(matches!(error, Error::TokenizerJson { .. }), "{text}: {error}");
    }
}

#[test]
fn other_kinds_of_tokenizers_are_refused_by_name() {
    let error = error_after("unigram", |parts| {
        parts["model"]["type"] = json!("WordLevel");
    });
    assert!(matches!(error, Error::TokenizerKind { .. }), "{error}");
    assert!(error.to_string().contains("`WordLevel`"), "{error}");
    let metaspace =
        json!({"type": "Metaspace", "replacement": "\u{2581}", "prepend_scheme": "always"});
    let error = error_after("byte_level", |parts| parts["pre_tokenizer"] = metaspace);
    assert!(matches!(error, Error::TokenizerKind { .. }), "{error}");
    let error = error_after("byte_level", |parts| parts["model"]["dropout"] = json!(0.1));
    assert!(error.to_string().contains("dropout"), "{error}");
    let error = error_after("unigram", |parts| parts["model"]["unk_id"] = json!(null));
    assert!(error.to_string().contains("unk_id"), "{error}");
    let error = error_after("unigram", |parts| {
        parts["model"]["unk_id"] = json!(1_000_000);
    });
    assert!(matches!(error, Error::TokenizerKind { .. }), "{error}");
}

#[test]
fn a_normalization_table_that_states_a_huge_size_is_refused() {
    // Found by fuzzing: the first four bytes state a trie of 4 GB, for which the `tokenizers` crate reserved 8 GB.
    let table = json!({"type": "Precompiled", "precompiled_charsmap": "/////wAAAABhAA=="});
    for normalizer in [table.clone(), json!({"type": "Sequence", "normalizers": [table]})] {
        let error = error_after("unigram", |parts| parts["normalizer"] = normalizer);
        assert!(matches!(error, Error::TokenizerKind { .. }), "{error}");
        assert!(error.to_string().contains("a damaged normalization table"), "{error}");
    }
}

#[test]
fn a_missing_special_piece_is_named() {
    let error = error_after("unigram", |parts| {
        parts["added_tokens"] = json!([]);
        parts["model"]["vocab"][4][0] = json!("mask");
    });
    assert!(matches!(error, Error::NoSpecial { piece: "<mask>", .. }), "{error}");
}

#[test]
fn added_pieces_that_contradict_the_vocabulary_are_refused() {
    for id in [7, 5_000, u32::MAX] {
        let error = error_after("unigram", |parts| {
            parts["added_tokens"][4]["id"] = json!(id);
        });
        assert!(matches!(error, Error::AddedPiece { id: found, .. } if found == id), "{error}");
    }
}

#[test]
fn a_vocabulary_with_gaps_is_refused() {
    let error = error_after("byte_level", |parts| {
        parts["model"]["vocab"]["<mask>"] = json!(9_999);
    });
    assert!(matches!(error, Error::TokenizerKind { .. }), "{error}");
}

#[test]
fn truncation_and_padding_are_ignored() {
    let mut parts: Value = serde_json::from_str(&read_json("unigram")).unwrap();
    parts["truncation"] =
        json!({"direction": "Right", "max_length": 3, "strategy": "LongestFirst", "stride": 0});
    parts["padding"] = json!({"strategy": {"Fixed": 9}, "direction": "Right", "pad_to_multiple_of": null,
        "pad_id": 1, "pad_type_id": 0, "pad_token": "<pad>"});
    let (plain, set) = (open(read_json("unigram")).unwrap(), open(parts.to_string()).unwrap());
    let tokens = ["A", "sentence", "of", "more", "than", "nine", "tokens", ",", "not", "cut", "."];
    assert_eq!(set.encode(&tokens).unwrap(), plain.encode(&tokens).unwrap());
}

#[test]
fn a_damaged_normalisation_table_is_refused() {
    for table in
        ["", "AAAA", "AAAAAAAA", "/////w==", "ALQCAAAgAAAJCQAA", "BAAAAP////8=", "not base64!"]
    {
        let error = error_after("unigram", |parts| {
            parts["normalizer"] = json!({"type": "Precompiled", "precompiled_charsmap": table});
        });
        assert!(
            matches!(error, Error::TokenizerKind { .. } | Error::Segment { .. }),
            "{table}: {error}"
        );
    }
}

/// Returns the error for a unigram tokenizer with these normalizers.
fn error_with_rules(rules: &Value) -> String {
    let rules = json!({"type": "Sequence", "normalizers": rules});
    let error = error_after("unigram", |parts| parts["normalizer"] = rules);
    assert!(matches!(error, Error::TokenizerKind { .. }), "{error}");
    error.to_string()
}

fn replace(pattern: &str, content: &str) -> Value {
    json!({"type": "Replace", "pattern": {"String": pattern}, "content": content})
}

#[test]
fn rules_that_blow_up_are_refused() {
    let error = error_with_rules(&json!(vec![replace("a", "aa"); 40]));
    assert!(error.contains("makes the text longer"), "{error}");
    let error = error_with_rules(&json!([{"type": "Prepend", "prepend": "x".repeat(10_000_000)}]));
    assert!(error.contains("inserts more than 128 bytes"), "{error}");
    let error = error_with_rules(&json!([replace("a", &"b".repeat(1_000))]));
    assert!(error.contains("inserts more than 128 bytes"), "{error}");
    let error = error_with_rules(&json!(vec![json!({"type": "NFC"}); 65]));
    assert!(error.contains("more than 64 rules"), "{error}");
    let empty = json!({"type": "Replace", "pattern": {"Regex": ""}, "content": "x".repeat(100)});
    let error = error_with_rules(&json!([empty, empty, empty]));
    assert!(error.contains("makes the text longer"), "{error}");
}

#[test]
fn splitting_rules_that_blow_up_fail_on_the_token() {
    // Each of these rules writes the two bytes of a letter as two letters of two bytes.
    let rule = json!({
        "type": "ByteLevel", "add_prefix_space": false, "trim_offsets": false, "use_regex": false,
    });
    let mut parts: Value = serde_json::from_str(&read_json("unigram")).unwrap();
    parts["pre_tokenizer"] = json!({"type": "Sequence", "pretokenizers": vec![rule; 40]});
    let tokenizer = open(parts.to_string()).unwrap();
    assert!(matches!(tokenizer.encode(&["\u{e4}"]), Err(Error::Segment { .. })));
    assert!(tokenizer.encode(&["a"]).is_ok());
}

#[test]
fn rules_that_blow_up_on_a_rare_character_fail_on_that_token_only() {
    let mut parts: Value = serde_json::from_str(&read_json("unigram")).unwrap();
    parts["normalizer"] = json!({"type": "Sequence", "normalizers": vec![replace("\u{1f600}", "\u{1f600}\u{1f600}"); 40]});
    let tokenizer = open(parts.to_string()).unwrap();
    assert!(tokenizer.encode(&["Party"]).is_ok());
    let error = tokenizer.encode(&["Party", "\u{1f600}"]).unwrap_err();
    assert!(matches!(error, Error::Segment { .. }), "{error}");
}

#[test]
fn a_word_piece_model_that_splits_endless_words_is_refused() {
    for (edit, expected) in [
        (json!({"max_input_chars_per_word": 1_000_000_000}), "max_input_chars_per_word"),
        (json!({"unk_token": "nothing"}), "`nothing`"),
        (json!({"continuing_subword_prefix": ""}), "continuing_subword_prefix"),
    ] {
        let error = error_after("families/bert_cased", |parts| {
            let model = parts["model"].as_object_mut().unwrap();
            model.extend(edit.as_object().unwrap().clone());
        });
        assert!(error.to_string().contains(expected), "{error}");
    }
}

#[cfg(target_os = "linux")]
#[test]
fn endless_files_are_refused() {
    for name in ["tokenizer.json", "tokenizer_config.json", "vocab.txt"] {
        let dir = tempfile::tempdir().unwrap();
        std::os::unix::fs::symlink("/dev/zero", dir.path().join(name)).unwrap();
        let error = Tokenizer::open(dir.path()).err().unwrap();
        assert!(matches!(&error, Error::Read { path, .. } if path.ends_with(name)), "{error}");
        let dir = tempfile::tempdir().unwrap();
        let made = std::process::Command::new("mkfifo").arg(dir.path().join(name)).status();
        assert!(made.unwrap().success());
        let error = Tokenizer::open(dir.path()).err().unwrap();
        let source = std::error::Error::source(&error).unwrap().to_string();
        assert!(source.contains("not a regular file"), "{source}");
    }
}

#[cfg(target_os = "linux")]
#[test]
fn endless_model_files_are_refused() {
    for name in ["config.json", "model.safetensors"] {
        let dir = tempfile::tempdir().unwrap();
        for entry in std::fs::read_dir(repository().join("testdata/weights/f32")).unwrap() {
            let entry = entry.unwrap();
            std::fs::copy(entry.path(), dir.path().join(entry.file_name())).unwrap();
        }
        let path = dir.path().join(name);
        std::fs::remove_file(&path).unwrap();
        let made = std::process::Command::new("mkfifo").arg(&path).status();
        assert!(made.unwrap().success());
        let error = melm::models::Pretrained::open(dir.path()).err().unwrap();
        assert!(matches!(&error, Error::Read { path, .. } if path.ends_with(name)), "{error}");
    }
}

proptest! {
    /// A damaged file leads to an error or to a working tokenizer, never to a panic.
    #[test]
    fn a_damaged_file_never_panics(
        name in prop::sample::select(vec![
            "unigram", "byte_level", "families/bert_uncased", "families/camembert",
            "families/modernbert", "families/gemma",
        ]),
        edits in prop::collection::vec((any::<prop::sample::Index>(), 0x20u8..0x7f), 1..4),
        in_head in any::<bool>(),
    ) {
        let mut bytes = read_json(name).into_bytes();
        // The rules are at the start of the file, before the long vocabulary. Half of the edits change that part.
        let reach = if in_head { bytes.len().min(2_600) } else { bytes.len() };
        for (place, value) in edits {
            bytes[place.index(reach)] = value;
        }
        if let Ok(tokenizer) = open(String::from_utf8_lossy(&bytes).into_owned())
            && let Ok(encoded) = tokenizer.encode(&["Köln", "", "<mask>", "x"])
        {
            prop_assert_eq!(encoded.tokens.len(), 4);
            prop_assert!(encoded.pieces.iter().all(|&id| (id as usize) < tokenizer.n_pieces()));
        }
    }
}
