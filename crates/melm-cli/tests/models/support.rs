//! Folders with a tiny model and a corpus, and functions that run the command in them.

use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use melm::pieces::{Tokenizer, TokenizerFiles};
use melm_nn::config::Config;
use melm_nn::mlm::MaskedLm;

pub(crate) const TRAIN: &str = "\
Ada B-PER\nLovelace I-PER\nwrote O\nin O\nLondon B-LOC\n. O\n\n\
Bonn B-LOC\nis O\nnot O\nBerlin B-LOC\n. O\n\n\
Konrad B-PER\nZuse I-PER\nlived O\nin O\nBerlin B-LOC\n. O\n\n\
Grace B-PER\nHopper I-PER\nspoke O\n. O\n\n";

/// Returns a folder with a corpus and a tiny model, which has the tokenizer of mini.
pub(crate) fn folder() -> tempfile::TempDir {
    let tokenizer = include_str!("../../../melm-mini/model/tokenizer.json").to_owned();
    folder_with(
        &Tokenizer::from_files(TokenizerFiles { tokenizer, ..TokenizerFiles::default() }).unwrap(),
    )
}

/// Returns the same kind of folder, but the tokenizer has only a few hundred pieces, so that commands start fast.
pub(crate) fn tiny_folder() -> tempfile::TempDir {
    let pieces = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/pieces/unigram");
    folder_with(&Tokenizer::open(&pieces).unwrap())
}

fn folder_with(tokenizer: &Tokenizer) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let model = folder.path().join("model");
    tokenizer.save(&model).unwrap();
    let config = Config {
        vocab_size: tokenizer.n_pieces(),
        hidden_size: 16,
        n_layers: 1,
        n_heads: 2,
        intermediate_size: 24,
        max_position_embeddings: 66,
        initializer_range: 0.2,
        ..Config::default()
    };
    MaskedLm::random(&config, 1).unwrap().save(&model).unwrap();
    fs::write(folder.path().join("train.conll"), TRAIN).unwrap();
    folder
}

pub(crate) fn melm(folder: &Path, args: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_melm"));
    command.args(args.split_whitespace()).current_dir(folder);
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

pub(crate) fn run(folder: &Path, args: &str) -> Output {
    melm(folder, args).output().unwrap()
}

/// Runs the command and returns its messages. Panics if it fails.
pub(crate) fn done(folder: &Path, args: &str) -> String {
    let output = run(folder, args);
    let messages = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success(), "{args}: {messages}");
    messages
}

/// Returns the path and the contents of every file in the folder, except `run.json`, which contains times.
pub(crate) fn results(dir: &Path) -> Vec<(String, Vec<u8>)> {
    let mut files = Vec::new();
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        if path.is_dir() {
            files.extend(
                results(&path).into_iter().map(|(inner, b)| (format!("{name}/{inner}"), b)),
            );
        } else if name != "run.json" {
            files.push((name, fs::read(path).unwrap()));
        }
    }
    files.sort();
    files
}

/// Asserts that the folders contain the same files, byte for byte. `README.md` has the command, which names its folder.
pub(crate) fn assert_same(one: &Path, other: &Path) {
    let (one, other) = (results(one), results(other));
    let names = |files: &[(String, Vec<u8>)]| -> Vec<_> {
        files.iter().map(|(name, _)| name.clone()).collect()
    };
    assert_eq!(names(&one), names(&other));
    for ((name, one), (_, other)) in one.iter().zip(&other) {
        assert!(one == other || name == "README.md", "the bytes of `{name}` differ");
    }
}
