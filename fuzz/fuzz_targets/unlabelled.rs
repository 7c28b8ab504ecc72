//! Reads arbitrary bytes as unlabelled text in every format. Accepted sentences must have tokens that lie at their
//! spans in the text, and the tokenizer must lose nothing.
#![no_main]

use libfuzzer_sys::fuzz_target;
use melm_text::{TextFormat, TextOptions, Tokenizer, UnlabelledText};

/// The limits keep the memory of one input small.
const MAX_BYTES: u64 = 1 << 16;
const MAX_TOKENS: usize = 1 << 14;

fuzz_target!(|bytes: &[u8]| {
    let formats = [TextFormat::Plain, TextFormat::Conll, TextFormat::Jsonl].map(Some);
    for format in formats.into_iter().chain([None]) {
        let options = TextOptions {
            format,
            max_bytes: MAX_BYTES,
            max_tokens: MAX_TOKENS,
            ..TextOptions::default()
        };
        let Ok(text) = UnlabelledText::read("fuzz", bytes, &options) else { continue };
        assert!(!text.sentences().is_empty());
        for sentence in text.sentences() {
            assert!(!sentence.tokens().is_empty() && sentence.line() > 0);
            let Some(original) = sentence.text() else { continue };
            assert_eq!(sentence.spans().len(), sentence.tokens().len());
            for (token, span) in sentence.tokens().iter().zip(sentence.spans()) {
                assert_eq!(&original[span.clone()], token.as_str());
            }
        }
    }
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let tokenizer = Tokenizer::default();
    let Ok(found) = tokenizer.tokenize(text) else { return };
    let tokens = found.tokens().chain([""]);
    let again: String = found.gaps().zip(tokens).flat_map(|(gap, token)| [gap, token]).collect();
    assert_eq!(again, text);
});
