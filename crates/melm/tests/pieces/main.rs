//! Tests that pieces and their alignment equal those of Hugging Face, and are correct for any text of a corpus.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

mod families;
mod golden;
mod hostile;
mod markers;
mod properties;

use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use melm::pieces::{Tokenizer, TokenizerFiles};

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn testdata(name: &str) -> PathBuf {
    repository().join("testdata/pieces").join(name)
}

fn mini() -> Tokenizer {
    let files = TokenizerFiles {
        tokenizer: melm_mini::TOKENIZER.to_owned(),
        tokenizer_config: Some(melm_mini::TOKENIZER_CONFIG.to_owned()),
        special_tokens_map: Some(melm_mini::SPECIAL_TOKENS_MAP.to_owned()),
    };
    Tokenizer::from_files(files).unwrap()
}

/// The tokenizer of `mini`, opened once for all tests that do not change it.
static MINI: LazyLock<Tokenizer> = LazyLock::new(mini);
