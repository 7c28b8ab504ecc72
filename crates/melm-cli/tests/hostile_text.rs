//! Names and texts of files that would control a terminal or fill it.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fs;
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
