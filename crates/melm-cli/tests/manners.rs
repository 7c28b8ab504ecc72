//! How the command behaves among others: pipes, files, signals, help.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fs;
use std::io::{Read, Write};
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

const TEXT: &str = "Ada B-PER\nLovelace I-PER\nsang O\n\nOslo B-LOC\n\n";

fn melm(args: &[&str], folder: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_melm"));
    command.args(args).current_dir(folder);
    command
}

fn run(args: &[&str], folder: &Path, input: &str) -> Output {
    let mut child = melm(args, folder)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    child.wait_with_output().unwrap()
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).unwrap()
}

fn names_in(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap();
    let mut names: Vec<_> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn a_pipe_carries_data_and_nothing_else() {
    let folder = tempfile::tempdir().unwrap();
    let json = run(&["convert", "-", "--to", "jsonl"], folder.path(), TEXT);
    assert!(json.status.success());
    assert!(text(&json.stdout).lines().all(|line| line.starts_with('{')));
    let back = run(&["convert", "-", "--to", "conll"], folder.path(), text(&json.stdout));
    assert_eq!(text(&back.stdout), TEXT.replace(' ', "\t"));
    assert!(!text(&back.stderr).contains('\u{1b}'), "colours only on a terminal");
}

#[test]
fn quiet_says_nothing_but_errors() {
    let folder = tempfile::tempdir().unwrap();
    let done = run(&["-q", "convert", "-"], folder.path(), TEXT);
    assert_eq!((text(&done.stdout), text(&done.stderr)), (TEXT, ""));
    let wrong = run(&["-q", "convert", "-"], folder.path(), "Ada PER\n");
    assert!(text(&wrong.stderr).starts_with("error: "));
}

#[test]
fn a_bad_file_leaves_no_output_behind() {
    let folder = tempfile::tempdir().unwrap();
    let mut input = TEXT.repeat(20_000);
    input += "Oslo LOC\n";
    let done = run(&["convert", "-", "-o", "out.conll"], folder.path(), &input);
    assert_eq!(done.status.code(), Some(1));
    assert!(names_in(folder.path()).is_empty(), "{:?}", names_in(folder.path()));
    let done = run(&["convert", "-"], folder.path(), &input);
    assert_eq!((done.status.code(), done.stdout.len()), (Some(1), 0));
}

#[test]
fn nothing_is_overwritten_unless_forced() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out.conll");
    fs::write(&out, "mine").unwrap();
    let refused = run(&["convert", "-", "-o", "out.conll"], folder.path(), "");
    assert_eq!(refused.status.code(), Some(1));
    assert_eq!(fs::read_to_string(&out).unwrap(), "mine");
    let forced = run(&["convert", "-", "-o", "out.conll", "--force"], folder.path(), TEXT);
    assert!(forced.status.success());
    assert_eq!(fs::read_to_string(&out).unwrap(), TEXT);
}

#[test]
fn a_closed_pipe_is_no_failure() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("big.conll"), TEXT.repeat(50_000)).unwrap();
    let mut child = melm(&["convert", "big.conll"], folder.path())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut few = [0; 100];
    child.stdout.take().unwrap().read_exact(&mut few).unwrap();
    let done = child.wait_with_output().unwrap();
    assert_eq!((done.status.code(), text(&done.stderr)), (Some(0), ""));
}

#[cfg(unix)]
#[test]
fn an_interrupted_command_exits_with_130_and_leaves_nothing() {
    let folder = tempfile::tempdir().unwrap();
    // It holds its input open, so the command is still waiting when the signal comes.
    let mut child = melm(&["convert", "-", "-o", "out.conll"], folder.path())
        .stdin(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    std::thread::sleep(Duration::from_millis(300));
    let kill = Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    assert!(kill.success());
    let started = Instant::now();
    let status = loop {
        if let Some(status) = child.try_wait().unwrap() {
            break status;
        }
        assert!(started.elapsed() < Duration::from_secs(10), "it goes on after Ctrl-C");
        std::thread::sleep(Duration::from_millis(20));
    };
    assert_eq!(status.code(), Some(130));
    assert!(names_in(folder.path()).is_empty());
}

#[test]
fn draws_are_nested_and_their_numbers_are_beside_them() {
    let folder = tempfile::tempdir().unwrap();
    let sentences: String = (1..=50).map(|n| format!("# id s{n}\nword{n} B-X\n\n")).collect();
    let numbers = |size: &str, out: &str| -> Vec<String> {
        let args = ["sample", "-", "--size", size, "--seed", "3", "-o", out];
        assert!(run(&args, folder.path(), &sentences).status.success());
        let drawn = fs::read_to_string(folder.path().join(out)).unwrap();
        let ids = fs::read_to_string(folder.path().join(format!("{out}.ids"))).unwrap();
        let ids: Vec<_> = ids.lines().skip(1).map(str::to_owned).collect();
        for id in &ids {
            let (number, name) = id.split_once('\t').unwrap();
            assert_eq!(name, format!("s{number}"));
            assert!(drawn.contains(&format!("# id s{number}\nword{number} B-X\n\n")));
        }
        assert_eq!(drawn.matches("# id").count(), ids.len());
        ids
    };
    let (few, many) = (numbers("10", "a.conll"), numbers("20", "b.conll"));
    assert_eq!((few.len(), many.len()), (10, 20));
    assert!(few.iter().all(|id| many.contains(id)));
}

#[test]
fn tag_ids_come_back_as_the_tags_they_were() {
    let folder = tempfile::tempdir().unwrap();
    let args = ["convert", "-", "-o", "a.jsonl", "--tag-ids"];
    assert!(run(&args, folder.path(), TEXT).status.success());
    let json = fs::read_to_string(folder.path().join("a.jsonl")).unwrap();
    assert!(json.contains("\"ner_tags\":[3,4,0]"), "{json}");
    let back = run(&["convert", "a.jsonl", "--to", "conll"], folder.path(), "");
    assert_eq!(text(&back.stdout), TEXT.replace(' ', "\t"));
}

#[test]
fn latin1_is_read_when_asked_for() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("l1"), b"K\xf6ln B-LOC\n").unwrap();
    let done = run(&["-q", "convert", "l1", "--encoding", "latin1"], folder.path(), "");
    assert_eq!(text(&done.stdout), "Köln B-LOC\n\n");
}

#[test]
fn repair_is_done_on_request_and_counted() {
    let folder = tempfile::tempdir().unwrap();
    let slip = "Ada B-PER\n\nin O\nOslo I-LOC\n\nNew B-LOC\nYork I-LOC\n\n";
    let done = run(&["convert", "-", "--repair"], folder.path(), slip);
    assert_eq!(text(&done.stdout), slip.replace("Oslo I-LOC", "Oslo B-LOC"));
    assert!(text(&done.stderr).contains("repaired 1 tag"), "{}", text(&done.stderr));
}

#[test]
fn scores_as_json_have_the_micro_rates_at_the_top() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("gold"), TEXT).unwrap();
    let predicted = TEXT.replace("Oslo B-LOC", "Oslo B-PER");
    let done = run(&["score", "--json", "gold", "-"], folder.path(), &predicted);
    let json: serde_json::Value = serde_json::from_slice(&done.stdout).unwrap();
    for key in ["f1", "precision", "recall"] {
        assert!((json[key].as_f64().unwrap() - 0.5).abs() < 1e-12, "{json}");
    }
    assert_eq!(json["types"]["PER"]["support"], 1);
    assert_eq!(json["types"]["PER"]["predicted"], 2);
}

#[test]
fn leaks_between_splits_are_found_and_said() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("train"), TEXT).unwrap();
    fs::write(folder.path().join("test"), "new O\n\nOslo O\n\n").unwrap();
    let done = run(&["check", "train", "test"], folder.path(), "");
    assert!(done.status.success());
    assert!(text(&done.stdout).contains("line 3: as train:5, with other mentions"));
    let done = run(&["check", "--json", "train", "test"], folder.path(), "");
    let json: serde_json::Value = serde_json::from_slice(&done.stdout).unwrap();
    assert_eq!(json["files"][1]["repeats"]["leaks"]["n"], 1);
}

#[test]
fn help_and_completions_know_every_command() {
    let folder = tempfile::tempdir().unwrap();
    for shell in ["bash", "zsh", "fish", "powershell", "elvish"] {
        let done = run(&["completions", shell], folder.path(), "");
        for command in ["check", "convert", "sample", "score"] {
            assert!(text(&done.stdout).contains(command), "{shell} {command}");
        }
    }
    for command in ["check", "convert", "sample", "score"] {
        let help = run(&[command, "--help"], folder.path(), "");
        assert!(text(&help.stdout).contains(&format!("melm {command} ")), "{command}: an example");
    }
    assert_eq!(run(&[], folder.path(), "").status.code(), Some(2));
}
