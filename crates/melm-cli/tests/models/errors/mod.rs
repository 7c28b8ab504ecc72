//! Every error that a command can show is triggered by a command. `tools/check_errors.py` lists the errors without a test.

mod experiments;
mod files;
mod hub;
mod models;
mod runs;
mod settings;
mod stopped;

use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use crate::support::{done, run, tiny_folder};

/// Trains a tagger for one update, in the folder `out`.
const TRAIN: &str =
    "train train.conll --dev train.conll -o out --model model --updates 1 --threads 1";
/// Makes drafts with short trainings, in the folder `out`.
const AUGMENT: &str =
    "augment train.conll --dev train.conll -o out --model model --config plan.toml --threads 1";
/// Trains the tagger that some cases need, in the folder `tagger`.
const TAGGER: &str =
    "train train.conll --dev train.conll -o tagger --model model --updates 1 --threads 1";

/// The plan of [`AUGMENT`].
const PLAN: &str =
    "finetune.budget = '1 updates'\ntagger.budget = '1 updates'\ngenerate.rounds = 1\n";

/// A command that fails.
struct Case {
    /// The error, as `tools/check_errors.py` names it.
    variant: &'static str,
    /// Prepares the folder, which has a model, a corpus and a plan.
    prepare: fn(&Path),
    command: String,
    exit: i32,
    /// A part of the messages of the command.
    message: &'static str,
}

/// Runs each case in a folder of its own.
fn check(cases: &[Case]) {
    let failures: Vec<String> = cases.iter().filter_map(|case| try_case(case).err()).collect();
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

fn try_case(case: &Case) -> Result<(), String> {
    let folder = tiny_folder();
    let path = folder.path();
    write(path, "plan.toml", PLAN);
    (case.prepare)(path);
    let output = run(path, &case.command);
    let messages = String::from_utf8(output.stderr).unwrap();
    if output.status.code() != Some(case.exit) {
        return Err(format!("{}: exit {:?}\n{messages}", case.variant, output.status.code()));
    }
    // Long messages are wrapped.
    let joined = messages.split_whitespace().collect::<Vec<_>>().join(" ");
    if !joined.contains(case.message) {
        return Err(format!("{}: no `{}` in\n{messages}", case.variant, case.message));
    }
    Ok(())
}

/// Leaves the folder as it is.
fn nothing(_: &Path) {}

/// Writes a file, and the folders that it needs.
fn write(folder: &Path, name: &str, content: impl AsRef<[u8]>) {
    let path = folder.join(name);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, content).unwrap();
}

fn remove(folder: &Path, name: &str) {
    fs::remove_file(folder.join(name)).unwrap();
}

/// Changes a JSON file.
fn edit_json(folder: &Path, name: &str, edit: impl FnOnce(&mut Value)) {
    let path = folder.join(name);
    let mut value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
    edit(&mut value);
    fs::write(path, value.to_string()).unwrap();
}

/// Returns a `tokenizer.json` of BERT's kind with these pieces and added pieces, given with their ids.
fn word_piece(pieces: &[&str], added: &[(&str, usize)]) -> String {
    let vocab: Value =
        pieces.iter().enumerate().map(|(id, piece)| ((*piece).to_owned(), json!(id))).collect();
    let added = added.iter().map(|(content, id)| {
        json!({
            "id": id, "content": content, "special": true, "single_word": false, "lstrip": false, "rstrip": false,
            "normalized": false,
        })
    });
    json!({
        "added_tokens": added.collect::<Value>(),
        "pre_tokenizer": { "type": "BertPreTokenizer" },
        "model": {
            "type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": "##",
            "max_input_chars_per_word": 100, "vocab": vocab,
        },
    })
    .to_string()
}
