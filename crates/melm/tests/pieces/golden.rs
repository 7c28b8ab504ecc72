//! Ids and ranges as Hugging Face gives them; see `tools/make_pieces_golden.py`.

use std::fs::read_to_string;

use melm::pieces::{Encoded, Tokenizer};

use crate::{MINI, repository, testdata};

/// A sentence with its encoding in full.
#[derive(serde::Deserialize)]
struct Golden {
    tokens: Vec<String>,
    pieces: Vec<u32>,
    words: Vec<(u32, u32)>,
    n_invisible: usize,
}

fn check_in_full(tokenizer: &Tokenizer, file: &str) -> usize {
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
        // Once more, now that every token is remembered.
        assert_eq!(tokenizer.encode(tokens).unwrap(), expected, "{tokens:?}");
    }
    golden.iter().map(|golden| golden.n_invisible).sum()
}

/// 64-bit FNV-1a over the little-endian u32s of ids and range ends, behind their counts.
fn fingerprint(encoded: &Encoded) -> String {
    let n_pieces = u32::try_from(encoded.pieces.len()).unwrap();
    let ends = encoded.tokens.iter().map(|word| word.end);
    let numbers = std::iter::once(n_pieces).chain(encoded.pieces.iter().copied()).chain(ends);
    let bytes = numbers.flat_map(u32::to_le_bytes);
    let value = bytes.fold(0xcbf2_9ce4_8422_2325_u64, |value, byte| {
        (value ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    format!("{value:016x}")
}

/// The tokens of each sentence, by the plainest reading of the format.
fn read_conll(name: &str) -> Vec<Vec<String>> {
    let text = read_to_string(repository().join("examples/politics").join(name)).unwrap();
    let sentences = text.split("\n\n").map(|sentence| {
        let lines = sentence.lines().filter(|line| !line.trim().is_empty());
        lines.map(|line| line.split('\t').next().unwrap().to_owned()).collect()
    });
    sentences.filter(|sentence: &Vec<String>| !sentence.is_empty()).collect()
}

#[test]
fn real_sentences_in_four_languages_have_the_pieces_of_hugging_face() {
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
fn unicode_traps_keep_their_alignment() {
    let n_invisible = check_in_full(&MINI, "mini_traps.json");
    assert!(n_invisible > 20, "the traps hold tokens without any piece: {n_invisible}");
}

#[test]
fn a_tokenizer_as_transformers_saves_it_for_xlm_r_agrees() {
    check_in_full(&Tokenizer::open(&testdata("unigram")).unwrap(), "unigram_golden.json");
}

#[test]
fn byte_level_pieces_as_roberta_has_them_agree() {
    check_in_full(&Tokenizer::open(&testdata("byte_level")).unwrap(), "byte_level_golden.json");
}
