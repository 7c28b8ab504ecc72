//! Names and texts of files that would control a terminal or fill it.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

/// Sentences that show that the scheme is IOB2.
const PLAIN: &str = "in O\nBonn B-LOC\n\nin O\nOslo B-LOC\n\n";

/// Runs the command on a file with this content.
fn run_on(content: &str, words: &[&str]) -> Output {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("in.conll"), content).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_melm"));
    command.args(words).current_dir(folder.path()).output().unwrap()
}

/// Returns everything that the command printed.
fn printed(output: &Output) -> String {
    [&output.stdout, &output.stderr].map(|bytes| String::from_utf8_lossy(bytes)).concat()
}

#[test]
fn an_entity_type_cannot_control_the_terminal() {
    let odd = "\u{1b}[31mX\u{7}\u{202e}Y";
    let valid = format!("Ada B-{odd}\nsang O\n\n");
    let broken = format!("Ada B-{odd}\nsang O\nBonn I-{odd}\n\n{PLAIN}");
    for (content, code) in [(&valid, 0), (&broken, 1)] {
        let output = run_on(content, &["check", "in.conll"]);
        assert_eq!(output.status.code(), Some(code));
        let text = printed(&output);
        assert!(!text.contains(['\u{1b}', '\u{7}', '\u{202e}']), "{text:?}");
        assert!(text.contains(r"\u{1b}[31mX\u{7}\u{202e}Y "), "{text}");
    }
}

#[test]
fn a_long_entity_type_is_shortened() {
    let long = "X".repeat(1 << 20);
    let content = format!("Ada B-{long}\nsang O\nBonn I-{long}\n\n{PLAIN}");
    for words in
        [&["check", "in.conll"][..], &["convert", "in.conll"], &["score", "in.conll", "in.conll"]]
    {
        let output = run_on(&content, words);
        assert_eq!(output.status.code(), Some(1), "{words:?}");
        assert!(printed(&output).len() < 5_000, "{words:?}: {} bytes", printed(&output).len());
    }
}

/// An entity type in a table of scores is escaped and shortened too.
#[test]
fn a_type_in_a_table_cannot_control_the_terminal() {
    let odd = "\u{1b}[31mX\u{7}\u{202e}Y".to_owned() + &"Z".repeat(900);
    let content = format!("Ada B-{odd}\nsang O\n\n");
    let output = run_on(&content, &["score", "in.conll", "in.conll"]);
    assert_eq!(output.status.code(), Some(0));
    let text = printed(&output);
    assert!(!text.contains(['\u{1b}', '\u{7}', '\u{202e}']), "{text:?}");
    assert!(text.contains(r"\u{1b}[31mX\u{7}\u{202e}YZZZ") && text.len() < 2_000, "{text}");
}

#[test]
fn a_long_mention_and_many_types_are_shortened() {
    let prefix = |at: usize| if at == 0 { 'B' } else { 'I' };
    let rows: String = (0..2_000).map(|at| format!("w{at} {}-PER\n", prefix(at))).collect();
    let output = run_on(&format!("{rows}\nsang O\n\n"), &["check", "in.conll"]);
    let text = printed(&output);
    assert!(text.contains("line 1: PER `w0 w1 w2") && text.contains("…`, 2000 tokens"), "{text}");
    assert!(text.len() < 2_000, "{} bytes", text.len());
    let rows: String = (0..3_000).map(|at| format!("w{at} B-T{at}\n\n")).collect();
    let text = printed(&run_on(&rows, &["check", "in.conll"]));
    assert!(text.contains("2970 types more"), "{text}");
    assert!(text.len() < 3_000, "{} bytes", text.len());
}

#[test]
fn rows_of_broken_sentences_are_not_counted() {
    let content = "Ada B-PER\nKing I-PER extra\nsang O\n\nin O\nthe O\nsea O\n\n";
    let output = run_on(content, &["check", "in.conll"]);
    assert_eq!(output.status.code(), Some(1));
    let text = printed(&output);
    let counted =
        "1, 1 of them without a mention; 1 more with rows that cannot be read, not counted";
    assert!(text.contains(counted), "{text}");
    assert!(text.contains("tokens      3\n"), "{text}");
    assert!(!text.contains("every tag is `O`"), "{text}");
}

/// Asserts that the command failed, and that its messages have few lines and bytes.
fn assert_short(output: &Output) -> String {
    let text = printed(output);
    assert!(matches!(output.status.code(), Some(1 | 2)), "{:?}: {text}", output.status);
    assert!(text.lines().count() < 10 && text.len() < 6_000, "{} bytes", text.len());
    assert!(text.starts_with("error: "), "{text}");
    text
}

/// Runs the command in a folder that `prepare` has filled.
fn run_in(prepare: impl FnOnce(&Path), words: &[&str]) -> Output {
    let folder = tempfile::tempdir().unwrap();
    prepare(folder.path());
    let mut command = Command::new(env!("CARGO_BIN_EXE_melm"));
    command.args(words).current_dir(folder.path()).output().unwrap()
}

#[test]
fn a_value_of_a_record_cannot_forge_lines() {
    let record = serde_json::json!({ "command": "train\nerror: forged".repeat(5_000) });
    let write = |folder: &Path| fs::write(folder.join("run.json"), record.to_string()).unwrap();
    let text = assert_short(&run_in(write, &["report", "."]));
    assert!(text.contains(r"was made by `melm train\nerror: forged"), "{text}");
    assert!(text.contains("there are reports only of"), "{text}");
}

#[test]
fn a_key_of_a_plan_cannot_forge_lines() {
    for n in [10, 20_000, 5_000_000] {
        let plan = format!("\"x{}\" = 1\n", r"\n".repeat(n));
        let write = |folder: &Path| fs::write(folder.join("plan.toml"), &plan).unwrap();
        let text = assert_short(&run_in(write, &["config", "show", "--config", "plan.toml"]));
        assert!(text.contains(r"a plan has no key `x\n\n\n"), "{text}");
    }
}

#[test]
fn a_mistake_in_a_file_of_settings_keeps_its_lines() {
    let write = |folder: &Path| {
        fs::write(folder.join("plan.toml"), "seed = \n").unwrap();
        fs::write(folder.join("grid.toml"), "\"a\\nerror: forged\" = 1\n").unwrap();
    };
    let text = assert_short(&run_in(write, &["config", "show", "--config", "plan.toml"]));
    assert!(text.contains("\n1 | seed = \n  |        ^\n"), "{text}");
    let words = ["reproduce", "mono", "--config", "grid.toml", "-o", "out", "--dry-run"];
    let text = assert_short(&run_in(write, &words));
    assert!(text.contains(r"unknown field `a\nerror: forged`"), "{text}");
}

/// The cure is at the end of a long message.
#[test]
fn the_end_of_a_long_message_is_shown() {
    let value = "x".repeat(1 << 20);
    let plan = format!("method = \"{value}\"\n");
    let write = |folder: &Path| fs::write(folder.join("plan.toml"), plan).unwrap();
    let text = assert_short(&run_in(write, &["config", "show", "--config", "plan.toml"]));
    assert!(text.contains(" more characters) …") && text.contains("`label-wise`"), "{text}");
}

#[cfg(unix)]
#[test]
fn the_name_of_a_file_cannot_forge_lines() {
    let name = "a\nerror: forged\u{1b}[2J.conll";
    let write = |folder: &Path| fs::write(folder.join(name), format!("{PLAIN}in O\nBonn B-LOC\n"));
    let output = run_in(|folder| write(folder).unwrap(), &["check", name]);
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.starts_with("a\\nerror: forged\\u{1b}[2J.conll\n  format"), "{text}");
    assert!(text.contains("same as a\\nerror: forged\\u{1b}[2J.conll:1"), "{text}");
    let output =
        run_in(|folder| fs::write(folder.join(name), "a b c\nd\n").unwrap(), &["check", name]);
    let text = printed(&output);
    assert!(!text.contains("\nerror: forged") && !text.contains('\u{1b}'), "{text:?}");
}

/// A grid and a ledger name languages.
#[test]
fn a_language_of_a_grid_cannot_control_the_terminal() {
    let grid = "files = \"{language}/{split}.conll\"\n[[grid]]\nlanguages = [\"e\\u001b[2Jn\"]\nsizes = [100]\ndraws = [1]\n\
                seeds = [1]\nmethods = [\"gold\"]\nbudgets = [\"1 updates\"]\n";
    let write = |folder: &Path| fs::write(folder.join("grid.toml"), grid).unwrap();
    let words = ["reproduce", "entities", "--config", "grid.toml", "-o", "out", "--dry-run"];
    let output = run_in(write, &words);
    let text = printed(&output);
    assert!(text.contains(r"e\u{1b}[2Jn"), "{text:?}");
    assert!(!text.contains('\u{1b}'), "{text:?}");
}
