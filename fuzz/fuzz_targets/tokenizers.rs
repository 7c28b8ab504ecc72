//! Opens arbitrary bytes as `tokenizer.json`, and as the normalizer of a small one. An opened tokenizer must encode every
//! token or fail with an error, and its ids must be in its vocabulary.
#![no_main]

use std::sync::Once;

use libfuzzer_sys::fuzz_target;
use melm::pieces::{PieceKinds, Tokenizer, TokenizerFiles};

/// Returns a small tokenizer whose normalizer is the input.
fn with_rules(rules: &str) -> String {
    format!(
        r###"{{"normalizer": {rules}, "pre_tokenizer": {{"type": "BertPreTokenizer"}}, "model": {{"type": "WordPiece",
        "unk_token": "[UNK]", "continuing_subword_prefix": "##", "max_input_chars_per_word": 100, "vocab":
        {{"[PAD]": 0, "[UNK]": 1, "[CLS]": 2, "[SEP]": 3, "[MASK]": 4, "a": 5, "##b": 6}}}}}}"###
    )
}

/// Removes the hook of libFuzzer, which ends the process at every panic. The `tokenizers` crate panics on some damaged
/// rules, and the library turns these panics into errors. A panic that the library does not catch still ends the process.
static NO_HOOK: Once = Once::new();

fuzz_target!(|bytes: &[u8]| {
    NO_HOOK.call_once(|| std::panic::set_hook(Box::new(|_| {})));
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    for tokenizer in [text.to_owned(), with_rules(text)] {
        let files = TokenizerFiles { tokenizer, ..TokenizerFiles::default() };
        let Ok(tokenizer) = Tokenizer::from_files(files) else { continue };
        let _ = PieceKinds::new(&tokenizer);
        for token in ["ab", "Köln", "", "<mask>", "中a", "aaaaaaaaaaaaaaaa"] {
            let Ok(encoded) = tokenizer.encode(&[token]) else { continue };
            assert_eq!(encoded.tokens.len(), 1);
            assert!(encoded.pieces.iter().all(|&id| (id as usize) < tokenizer.n_pieces()));
            let _ = tokenizer.decode(&encoded.pieces);
        }
    }
});
