//! Compares ids and ranges with those of Hugging Face; see `tools/make_pieces_golden.py`.

use std::fs::read_to_string;

use melm::pieces::{Encoded, Tokenizer};

use crate::{MINI, repository, testdata};

/// A sentence with its complete encoding.
#[derive(serde::Deserialize)]
struct Golden {
    tokens: Vec<String>,
    pieces: Vec<u32>,
    words: Vec<(u32, u32)>,
    n_invisible: usize,
}

pub(crate) fn check_complete(tokenizer: &Tokenizer, file: &str) -> usize {
    let text = read_to_string(testdata(file)).unwrap();
    let golden: Vec<Golden> = serde_json::from_str(&text).unwrap();
    for Golden { tokens, pieces, words, n_invisible } in &golden {
        let words = words.iter().map(|&(start, end)| start..end).collect();
        let expected = Encoded { pieces: pieces.clone(), tokens: words, n_invisible: *n_invisible };
        let found = tokenizer.encode(tokens).unwrap();
        for (place, token) in tokens.iter().enumerate() {
            assert_eq!(found.tokens[place], expected.tokens[place], "{token:?} in {tokens:?}");
        }
        assert_eq!(found, expected, "{tokens:?}");
        // This second call finds every token in the cache.
        assert_eq!(tokenizer.encode(tokens).unwrap(), expected, "{tokens:?}");
    }
    golden.iter().map(|golden| golden.n_invisible).sum()
}

/// A 64-bit FNV-1a hash of little-endian u32 numbers: the number of pieces, the ids, and the ends of the ranges.
pub(crate) fn fingerprint(encoded: &Encoded) -> String {
    let n_pieces = u32::try_from(encoded.pieces.len()).unwrap();
    let ends = encoded.tokens.iter().map(|word| word.end);
    let numbers = std::iter::once(n_pieces).chain(encoded.pieces.iter().copied()).chain(ends);
    let bytes = numbers.flat_map(u32::to_le_bytes);
    let value = bytes.fold(0xcbf2_9ce4_8422_2325_u64, |value, byte| {
        (value ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    format!("{value:016x}")
}

/// Reads the tokens of each sentence, with a minimal reader of the format.
pub(crate) fn read_conll(name: &str) -> Vec<Vec<String>> {
    let text = read_to_string(repository().join("examples/politics").join(name)).unwrap();
    let sentences = text.split("\n\n").map(|sentence| {
        let lines = sentence.lines().filter(|line| !line.trim().is_empty());
        lines.map(|line| line.split('\t').next().unwrap().to_owned()).collect()
    });
    sentences.filter(|sentence: &Vec<String>| !sentence.is_empty()).collect()
}

#[test]
fn sentences_in_four_languages_are_encoded_as_by_hugging_face() {
    let written = read_to_string(testdata("written.txt")).unwrap();
    let written = written.lines().map(|line| line.split(' ').map(str::to_owned).collect());
    let sentences: Vec<Vec<String>> = ["train.conll", "dev.conll", "test.conll"]
        .into_iter()
        .flat_map(read_conll)
        .chain(written)
        .collect();
    let expected = read_to_string(testdata("mini.txt")).unwrap();
    let expected: Vec<&str> = expected.lines().collect();
    assert_eq!(sentences.len(), expected.len());
    assert_eq!(sentences.len(), 200 + 541 + 651 + 60);
    for (sentence, expected) in sentences.iter().zip(expected) {
        assert_eq!(fingerprint(&MINI.encode(sentence).unwrap()), expected, "{sentence:?}");
    }
}

#[test]
fn unusual_unicode_keeps_its_alignment() {
    let n_invisible = check_complete(&MINI, "mini_traps.json");
    assert!(n_invisible > 20, "the file has tokens without any piece: {n_invisible}");
}

#[test]
fn a_unigram_tokenizer_saved_by_transformers_agrees() {
    check_complete(&Tokenizer::open(&testdata("unigram")).unwrap(), "unigram_golden.json");
}

#[test]
fn a_byte_level_tokenizer_as_of_roberta_agrees() {
    check_complete(&Tokenizer::open(&testdata("byte_level")).unwrap(), "byte_level_golden.json");
}
