//! A tokenizer.json comes from strangers too.

use melm::Error;
use melm::pieces::{Tokenizer, TokenizerFiles};
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::testdata;

fn open(text: String) -> Result<Tokenizer, Error> {
    Tokenizer::from_files(TokenizerFiles { tokenizer: text, ..TokenizerFiles::default() })
}

fn text_of(name: &str) -> String {
    std::fs::read_to_string(testdata(name).join("tokenizer.json")).unwrap()
}

/// The error of a tiny tokenizer with one thing changed.
fn error_of(name: &str, edit: impl FnOnce(&mut Value)) -> Error {
    let mut parts = serde_json::from_str(&text_of(name)).unwrap();
    edit(&mut parts);
    open(parts.to_string()).err().expect("the tokenizer is damaged")
}

#[test]
fn a_folder_without_a_tokenizer_says_how_to_make_one() {
    let dir = tempfile::tempdir().unwrap();
    let error = Tokenizer::open(dir.path()).err().unwrap();
    assert!(matches!(error, Error::NoTokenizer { .. }), "{error}");
    assert!(error.to_string().contains("save_pretrained"), "{error}");
}

#[test]
fn text_that_is_no_tokenizer_is_refused() {
    for text in ["", "{}", "[]", "null", "{\"model\": 3}", "{\"model\": {}"] {
        let error = open(text.to_owned()).err().unwrap();
        assert!(matches!(error, Error::TokenizerJson { .. }), "{text}: {error}");
    }
}

#[test]
fn other_kinds_of_tokenizers_are_refused_by_name() {
    let error = error_of("unigram", |parts| {
        parts["model"]["type"] = json!("WordPiece");
    });
    assert!(matches!(error, Error::TokenizerKind { .. }), "{error}");
    assert!(error.to_string().contains("`WordPiece`"), "{error}");
    let metaspace =
        json!({"type": "Metaspace", "replacement": "\u{2581}", "prepend_scheme": "always"});
    let error = error_of("byte_level", |parts| parts["pre_tokenizer"] = metaspace);
    assert!(matches!(error, Error::TokenizerKind { .. }), "{error}");
    let error = error_of("byte_level", |parts| parts["model"]["dropout"] = json!(0.1));
    assert!(error.to_string().contains("dropout"), "{error}");
    let error = error_of("unigram", |parts| parts["model"]["unk_id"] = json!(null));
    assert!(error.to_string().contains("unk_id"), "{error}");
    let error = error_of("unigram", |parts| {
        parts["model"]["unk_id"] = json!(1_000_000);
    });
    assert!(matches!(error, Error::TokenizerKind { .. }), "{error}");
}

#[test]
fn a_missing_special_piece_is_named() {
    let error = error_of("unigram", |parts| {
        parts["added_tokens"] = json!([]);
        parts["model"]["vocab"][4][0] = json!("mask");
    });
    assert!(matches!(error, Error::NoSpecial { piece: "<mask>", .. }), "{error}");
}

#[test]
fn added_pieces_that_contradict_the_vocabulary_are_refused() {
    for id in [7, 5_000, u32::MAX] {
        let error = error_of("unigram", |parts| {
            parts["added_tokens"][4]["id"] = json!(id);
        });
        assert!(matches!(error, Error::AddedPiece { id: found, .. } if found == id), "{error}");
    }
}

#[test]
fn a_vocabulary_with_gaps_is_refused() {
    let error = error_of("byte_level", |parts| {
        parts["model"]["vocab"]["<mask>"] = json!(9_999);
    });
    assert!(matches!(error, Error::TokenizerKind { .. }), "{error}");
}

#[test]
fn settings_for_cutting_and_filling_are_left_aside() {
    let mut parts: Value = serde_json::from_str(&text_of("unigram")).unwrap();
    parts["truncation"] =
        json!({"direction": "Right", "max_length": 3, "strategy": "LongestFirst", "stride": 0});
    parts["padding"] = json!({"strategy": {"Fixed": 9}, "direction": "Right", "pad_to_multiple_of": null,
        "pad_id": 1, "pad_type_id": 0, "pad_token": "<pad>"});
    let (plain, set) = (open(text_of("unigram")).unwrap(), open(parts.to_string()).unwrap());
    let tokens = ["A", "sentence", "of", "more", "than", "nine", "tokens", ",", "not", "cut", "."];
    assert_eq!(set.encode(&tokens).unwrap(), plain.encode(&tokens).unwrap());
}

#[test]
fn a_damaged_table_of_characters_is_refused() {
    for table in
        ["", "AAAA", "AAAAAAAA", "/////w==", "ALQCAAAgAAAJCQAA", "BAAAAP////8=", "not base64!"]
    {
        let error = error_of("unigram", |parts| {
            parts["normalizer"] = json!({"type": "Precompiled", "precompiled_charsmap": table});
        });
        assert!(
            matches!(error, Error::TokenizerKind { .. } | Error::Segment { .. }),
            "{table}: {error}"
        );
    }
}

proptest! {
    /// Damage gives an error or a tokenizer that keeps its promises, never a panic.
    #[test]
    fn no_damage_makes_it_panic(
        name in prop::sample::select(vec!["unigram", "byte_level"]),
        edits in prop::collection::vec((any::<prop::sample::Index>(), 0x20u8..0x7f), 1..4),
        in_head in any::<bool>(),
    ) {
        let mut bytes = text_of(name).into_bytes();
        // The rules stand before the long vocabulary: half of the damage goes there.
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
