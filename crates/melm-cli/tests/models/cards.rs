//! The cards of output folders.

use std::fs;

use crate::augment::{augment_into, prepared};
use crate::support::{TRAIN, assert_same, done, melm};

/// The command of the card makes the same files, with languages, text and other columns.
#[test]
fn the_command_of_a_card_repeats_the_run() {
    let folder = prepared();
    let path = folder.path();
    let columns: String = TRAIN
        .lines()
        .map(|row| row.split_once(' ').map_or(String::new(), |(a, b)| format!("{b}\tx\t{a}")))
        .map(|row| row + "\n")
        .collect();
    fs::write(path.join("columns.conll"), columns).unwrap();
    fs::write(path.join("text.txt"), "Ida sang in Oslo.\n").unwrap();
    let first = "augment en=columns.conll --unlabelled nl=text.txt --token-column 3 --tag-column 1 \
        --encoding utf-8 --scheme iob2 --text-format text --method label-wise --model model \
        --config fast.toml --set filter.mode=off --set self_training.panel=2 \
        --set self_training.budget=2~updates --rounds 1 -o first";
    let words = first.split_whitespace().map(|word| word.replace('~', " "));
    assert!(melm(path, "").args(words).output().unwrap().status.success());
    let card = fs::read_to_string(path.join("first/README.md")).unwrap();
    let line = card.lines().find_map(|line| line.strip_prefix("$ melm ")).unwrap();
    // A shell reads the command, quotes included.
    let again = format!("\"$MELM\" {}", line.replace("-o first", "-o again"));
    let mut shell = std::process::Command::new("sh");
    shell.args(["-c", &again]).env("MELM", env!("CARGO_BIN_EXE_melm")).current_dir(path);
    let output = shell.output().unwrap();
    assert!(output.status.success(), "{again}: {}", String::from_utf8_lossy(&output.stderr));
    assert_same(&path.join("first"), &path.join("again"));
}

#[test]
fn a_card_that_somebody_changed_is_kept() {
    let folder = prepared();
    let args = augment_into("out", "--method label-wise --force");
    done(folder.path(), &args);
    let path = folder.path().join("out/README.md");
    let own = fs::read_to_string(&path).unwrap().replacen("---\n", "---\nlicense: cc-by-4.0\n", 1);
    fs::write(&path, &own).unwrap();
    let messages = done(folder.path(), &args);
    assert!(messages.contains("kept your `README.md`"), "{messages}");
    assert_eq!(fs::read_to_string(&path).unwrap(), own);
    fs::remove_file(&path).unwrap();
    assert!(!done(folder.path(), &args).contains("README.md"));
    assert_eq!(own.replacen("license: cc-by-4.0\n", "", 1), fs::read_to_string(&path).unwrap());
}
