//! Sizes for which no machine has enough memory give an error. The command is never killed by a signal.

use std::fs;
use std::path::Path;
use std::process::Output;

use melm::pieces::Tokenizer;

use crate::augment::{augment_into, prepared};
use crate::support::{TRAIN, run};

const FIFTH: &str = "Alan B-PER\nTuring I-PER\nlived O\nin O\nLondon B-LOC\n. O\n\n";

/// Returns a folder with a tiny model and five sentences.
fn five_sentences() -> tempfile::TempDir {
    let folder = prepared();
    fs::write(folder.path().join("train.conll"), format!("{TRAIN}{FIFTH}")).unwrap();
    folder
}

/// Asserts that the command failed with exit code 1 or 2, and that its message has all of `words`.
fn assert_refused(output: &Output, words: &[&str]) {
    let messages = String::from_utf8_lossy(&output.stderr);
    assert!(matches!(output.status.code(), Some(1 | 2)), "{:?}: {messages}", output.status);
    assert!(messages.contains("error: "), "{messages}");
    for word in words {
        assert!(messages.contains(word), "no {word} in: {messages}");
    }
}

#[test]
fn a_plan_whose_size_in_bytes_overflows_is_refused() {
    let folder = five_sentences();
    let plan = "version = 1\nmethod = \"mulda\"\n[mulda]\nwidth = 16777216\nlayers = 585\nheads = 1\n\
                longest = 33544986\n";
    fs::write(folder.path().join("plan.toml"), plan).unwrap();
    let output = run(folder.path(), "augment train.conll -o out --model model --config plan.toml");
    assert_refused(&output, &["`mulda.width` must be at most 8192, but is 16777216"]);
}

#[test]
fn sizes_above_the_limits_are_refused_by_name() {
    let folder = five_sentences();
    for (method, key, value, limit) in [
        ("daga", "layers", "1000000000", "64"),
        ("daga", "hidden_size", "8589934592", "8192"),
        ("daga", "embedding_size", "8589934592", "8192"),
        ("daga", "longest", "8589934592", "65536"),
        ("mulda", "width", "8589934592", "8192"),
        ("mulda", "layers", "1000000000", "64"),
        ("mulda", "longest", "8589934592", "65536"),
        ("mulda", "beams", "8589934592", "1024"),
    ] {
        let more = format!("--method {method} --set {method}.{key}={value}");
        let output = run(folder.path(), &augment_into("out", &more));
        let message = format!("`{method}.{key}` must be at most {limit}, but is {value}");
        assert_refused(&output, &[&message]);
    }
}

/// Covers `melm-nn::error::Shape`.
#[test]
fn an_mbart_configuration_that_is_not_that_of_its_weights_is_refused() {
    let folder = five_sentences();
    let dir = folder.path().join("mbart");
    let testdata = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata");
    let mut tokenizer = Tokenizer::open(&testdata.join("pieces/unigram")).unwrap();
    tokenizer.add_markers(&["en_XX"]).unwrap();
    tokenizer.save(&dir).unwrap();
    let weights = testdata.join("seq2seq/mbart/model.safetensors");
    fs::copy(weights, dir.join("model.safetensors")).unwrap();
    // The model has slightly more than 2^62 parameters, so its number of bytes overflows.
    let size = 1_u64 << 24;
    let config = serde_json::json!({
        "model_type": "mbart", "vocab_size": 1000, "d_model": size, "max_position_embeddings": 16,
        "encoder_layers": 1024, "encoder_attention_heads": 1, "encoder_ffn_dim": size,
        "decoder_layers": 1024, "decoder_attention_heads": 1, "decoder_ffn_dim": size,
    });
    fs::write(dir.join("config.json"), config.to_string()).unwrap();
    let command = "--method mulda --mulda-model mbart --set filter.mode=off";
    let output = run(folder.path(), &augment_into("out", command));
    assert_refused(&output, &["expected [18, 16777216] from `config.json`"]);
}

/// Covers `melm-nn::error::OutOfMemory`.
#[cfg(unix)]
#[test]
fn memory_that_cannot_be_had_is_an_error() {
    let folder = five_sentences();
    let sizes = "--method mulda --set mulda.width=8192 --set mulda.heads=1 --set mulda.layers=1";
    let command = format!(
        "ulimit -v 6000000 && exec {} {} --threads 1",
        env!("CARGO_BIN_EXE_melm"),
        augment_into("out", sizes)
    );
    let output = std::process::Command::new("sh")
        .args(["-c", &command])
        .current_dir(folder.path())
        .output()
        .unwrap();
    assert_refused(&output, &["cannot allocate", "MiB of memory"]);
}
