//! Mistakes that a data command reports: an output that would be lost, files without text, tags and splits that do not fit.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Output, Stdio};

const TEXT: &str = "Ada B-PER\nLovelace I-PER\nsang O\n\nOslo B-LOC\n\n";

fn run(folder: &Path, args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_melm")).args(args).current_dir(folder).output().unwrap()
}

/// Runs a line of the shell, in which `$MELM` is the program.
#[cfg(unix)]
fn shell(folder: &Path, line: &str) -> Output {
    let mut command = Command::new("sh");
    command.args(["-c", line]).env("MELM", env!("CARGO_BIN_EXE_melm")).current_dir(folder);
    command.output().unwrap()
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).unwrap()
}

/// Returns a folder with the files of these names and contents.
fn folder_with(files: &[(&str, &str)]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (name, content) in files {
        fs::write(folder.path().join(name), content).unwrap();
    }
    folder
}

#[test]
fn a_file_of_names_that_cannot_be_read_is_not_taken_for_a_list_of_names() {
    let ids = "{\"tokens\": [\"Ada\"], \"ner_tags\": [1]}\n";
    let folder = folder_with(&[("a.jsonl", ids)]);
    fs::write(folder.path().join("names.txt"), b"O\nB-P\xffR\n").unwrap();
    fs::create_dir(folder.path().join("names")).unwrap();
    for (names, cause) in [("names.txt", "UTF-8"), ("names", "directory")] {
        let found = run(folder.path(), &["check", "a.jsonl", "--names", names]);
        let message = text(&found.stderr);
        assert_eq!(found.status.code(), Some(1), "{message}");
        assert!(message.contains(&format!("cannot read `{names}`")), "{message}");
        assert!(message.contains(cause), "{message}");
    }
    // A list that is longer than a name of a file can be.
    let long = format!("O,B-PER,{}", "I-X,".repeat(2000));
    let found = run(folder.path(), &["check", "a.jsonl", "--names", &long]);
    assert!(!text(&found.stderr).contains("cannot read"), "{}", text(&found.stderr));
}

#[test]
fn check_lists_only_schemes_that_all_tags_fit() {
    let folder = folder_with(&[
        ("none.conll", "Ada B-PER\nvan I-LOC\nDam I-LOC\n"),
        ("two.conll", "Ada I-PER\nsang O\n"),
    ]);
    let scheme = |args: &[&str]| {
        let found = run(folder.path(), args);
        let line = text(&found.stdout).lines().find(|line| line.starts_with("  scheme"));
        line.unwrap().split_whitespace().skip(1).collect::<Vec<_>>().join(" ")
    };
    assert_eq!(
        scheme(&["check", "none.conll"]),
        "IOB2 (no scheme fits all tags; 1 tag not allowed)"
    );
    assert_eq!(scheme(&["check", "none.conll", "--scheme", "iob1"]), "IOB1");
    assert_eq!(scheme(&["check", "two.conll"]), "IO (also valid as IOB1, IOE1)");
}

#[test]
fn check_names_the_files_of_a_brat_folder() {
    let folder = folder_with(&[]);
    let brat = folder.path().join("brat");
    fs::create_dir(&brat).unwrap();
    for (name, content) in [
        ("a.txt", "Ada sang.\n"),
        ("a.ann", "T1\tPER 0 3\tAda\n"),
        ("b.txt", "Hello.\nBob, slept here.\n"),
        ("b.ann", "T1\tPER 7 11\tBob,\n"),
        ("c.txt", "Nobody came.\n"),
    ] {
        fs::write(brat.join(name), content).unwrap();
    }
    let found = run(folder.path(), &["check", "brat"]);
    let report = text(&found.stdout);
    assert!(report.contains("5 tokens (b.txt, line 2)"), "{report}");
    assert!(report.contains("b.txt, line 2: PER `Bob ,`"), "{report}");
    assert!(text(&found.stderr).contains("1 × left out: files `NAME.txt`"), "{found:?}");
}

#[cfg(unix)]
#[test]
fn a_closed_standard_output_is_an_error() {
    let folder = folder_with(&[("a.conll", TEXT)]);
    for command in
        ["convert a.conll", "check a.conll", "score a.conll a.conll", "sample a.conll -n 1"]
    {
        let closed = shell(folder.path(), &format!("$MELM {command} >&-"));
        let messages = text(&closed.stderr);
        assert_eq!(closed.status.code(), Some(1), "{command}: {messages}");
        assert!(messages.contains("cannot write `standard output`: it is closed"), "{messages}");
    }
    for command in ["--help", "--version", "train --help"] {
        let closed = shell(folder.path(), &format!("$MELM {command} >&-"));
        let messages = text(&closed.stderr);
        assert_eq!(closed.status.code(), Some(1), "{command}: {messages}");
        assert!(messages.contains("cannot write `standard output`: it is closed"), "{messages}");
        assert_eq!(shell(folder.path(), &format!("$MELM {command} | true")).status.code(), Some(0));
        assert_eq!(shell(folder.path(), &format!("$MELM {command}")).status.code(), Some(0));
    }
    // A command that does not write there, and a /dev/null of the caller, are no errors. Python opens it for reading too.
    for line in [
        "$MELM convert a.conll -o b.conll >&-",
        "$MELM convert a.conll >/dev/null",
        "$MELM convert a.conll 1<>/dev/null",
    ] {
        assert_eq!(shell(folder.path(), line).status.code(), Some(0), "{line}");
    }
}

/// Covers `melm-text::error::Write`, whose message is given the name of the file.
#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_is_named() {
    let folder = folder_with(&[("a.conll", TEXT)]);
    let full = run(folder.path(), &["convert", "a.conll", "-o", "/dev/full"]);
    assert_eq!(full.status.code(), Some(1));
    let messages = text(&full.stderr);
    assert!(messages.contains("cannot write `/dev/full`: No space left"), "{messages}");
    let full = run(folder.path(), &["convert", "a.conll", "--to", "spacy", "-o", "/dev/full"]);
    let messages = text(&full.stderr);
    assert!(messages.contains("cannot write `/dev/full`: No space left"), "{messages}");
    let full = shell(folder.path(), "$MELM --help >/dev/full");
    assert_eq!(full.status.code(), Some(1));
    let messages = text(&full.stderr);
    assert!(messages.contains("cannot write `standard output`: No space left"), "{messages}");
}

/// Writes a chunk again and again to `melm check -`. Returns the number of bytes until it reads no more, and its messages.
fn feed(chunk: &[u8], limit: usize) -> (usize, String) {
    let folder = tempfile::tempdir().unwrap();
    let mut child = Command::new(env!("CARGO_BIN_EXE_melm"))
        .args(["check", "-"])
        .current_dir(folder.path())
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let mut n_bytes = 0;
    while n_bytes < limit && stdin.write_all(chunk).is_ok() {
        n_bytes += chunk.len();
    }
    drop(stdin);
    let done = child.wait_with_output().unwrap();
    assert_eq!(done.status.code(), Some(1));
    (n_bytes, String::from_utf8(done.stderr).unwrap())
}

/// A line of more than 256 MiB, such as the string of a hostile file, is refused before the rest is read.
/// Covers `melm-text::error::LongLine`.
#[test]
fn a_line_without_an_end_is_refused() {
    let (n_bytes, message) = feed(&vec![b'a'; 1 << 20], 1 << 30);
    assert!(n_bytes < 260 << 20, "{n_bytes}");
    assert!(message.contains("has a line of more than 256 MiB"), "{message}");
    assert!(message.contains("`jq -c '.[]'`"), "{message}");
}

/// Gigabytes of NUL bytes, with or without line feeds, are refused after the first of them.
#[test]
fn a_file_of_nul_bytes_is_refused_at_once() {
    let mut lines = vec![0; 1 << 20];
    lines[1_000] = b'\n';
    for chunk in [&vec![0; 1 << 20], &lines] {
        let (n_bytes, message) = feed(chunk, 1 << 30);
        assert!(n_bytes <= 8 << 20, "{n_bytes} bytes were read");
        assert!(message.contains("not a text file"), "{message}");
    }
}

#[test]
fn joined_tags_are_suspicious() {
    let joined = "Ada B-PER|B-ORG\nsang O\n\nOslo B-LOC|O\n\nBonn B-PER+B-LOC\n\nRom B-PER,I-LOC\n\nUlm B-PER/B-LOC\n\n";
    let plain = "Ada B-PER/ORG\nsang O\n\nOslo B-I/O\n\nBonn B-A-B\n\nRom B-A+B\n\nUlm B-A,B\n\n";
    let folder = folder_with(&[("joined", joined), ("plain", plain)]);
    let report = run(folder.path(), &["check", "joined"]);
    let report = text(&report.stdout);
    assert!(report.contains("5 × entity type that looks like several tags"), "{report}");
    for (line, name) in [(1, "PER|B-ORG"), (6, "PER+B-LOC"), (8, "PER,I-LOC"), (10, "PER/B-LOC")] {
        assert!(report.contains(&format!("line {line}: `{name}`: 1")), "{report}");
    }
    let report = run(folder.path(), &["check", "plain"]);
    assert!(!text(&report.stdout).contains("several tags"), "{}", text(&report.stdout));
}

#[test]
fn a_dev_set_with_other_types_and_another_scheme_is_reported() {
    let dev = "Zuse S-PER\nspoke O\n\nAcme B-ORG\nInc E-ORG\n\n";
    let folder = folder_with(&[("train", TEXT), ("dev", dev), ("same", "Ida B-PER\n\n")]);
    let report = run(folder.path(), &["check", "train", "dev"]);
    assert!(report.status.success());
    let report = text(&report.stdout);
    assert!(report.contains("the scheme is IOBES, that of train is IOB2"), "{report}");
    assert!(report.contains("entity types that train does not have: ORG 1"), "{report}");
    // Tags without `I-` are valid in several schemes.
    let report = run(folder.path(), &["check", "train", "same"]);
    assert!(!text(&report.stdout).contains("differs"), "{}", text(&report.stdout));
    let json = run(folder.path(), &["check", "--json", "train", "dev"]);
    let json: serde_json::Value = serde_json::from_slice(&json.stdout).unwrap();
    assert_eq!(json["files"][1]["difference"]["new_types"], serde_json::json!({ "ORG": 1 }));
    assert_eq!(json["files"][0].get("difference"), None);
}

#[test]
fn two_outputs_of_a_command_cannot_be_the_same_file() {
    let folder = folder_with(&[("a.conll", TEXT), ("d.jsonl", ""), ("none.jsonl", "")]);
    fs::write(folder.path().join("same.jsonl"), "mine").unwrap();
    let filter = "filter d.jsonl a.conll --decisions none.jsonl --force";
    let codemix = "codemix en=a.conll de=a.conll --random --force";
    for (line, wanted) in [
        (format!("{filter} -o same.jsonl --augmented ./same.jsonl"), "both write to `same.jsonl`"),
        (format!("{filter} -o new.jsonl --augmented new.jsonl"), "both write to `new.jsonl`"),
        (format!("{filter} --augmented -"), "both write to standard output"),
        (format!("{codemix} -o new.conll --drafts new.conll"), "both write to `new.conll`"),
    ] {
        let refused = run(folder.path(), &line.split(' ').collect::<Vec<_>>());
        let messages = text(&refused.stderr);
        assert_eq!(refused.status.code(), Some(2), "{line}: {messages}");
        assert!(messages.contains(wanted), "{messages}");
    }
    assert_eq!(fs::read_to_string(folder.path().join("same.jsonl")).unwrap(), "mine");
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 4);
}

/// Nothing is written, also not the first of two outputs.
#[test]
fn an_output_in_a_missing_folder_is_refused_before_the_work() {
    let folder = folder_with(&[("a.conll", TEXT), ("d.jsonl", ""), ("none.jsonl", "")]);
    let filter = "filter d.jsonl a.conll --decisions none.jsonl -o out.jsonl --augmented";
    for line in [
        format!("{filter} nodir/x.conll"),
        "sample a.conll -n 1 -o nodir/x.conll".to_owned(),
        "convert a.conll --to brat -o nodir/x".to_owned(),
    ] {
        let refused = run(folder.path(), &line.split(' ').collect::<Vec<_>>());
        let messages = text(&refused.stderr);
        assert_eq!(refused.status.code(), Some(1), "{line}: {messages}");
        assert!(messages.contains("cannot write `nodir/x"), "{messages}");
        assert!(messages.contains("create the folder first"), "{messages}");
    }
    fs::create_dir(folder.path().join("dir")).unwrap();
    let refused = run(folder.path(), &["convert", "a.conll", "-o", "dir", "--force"]);
    let messages = text(&refused.stderr);
    assert!(messages.contains("cannot write `dir`: is a directory"), "{messages}");
    assert!(messages.contains("pass the name of a file"), "{messages}");
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 4);
}

#[test]
fn an_ending_of_another_format_is_refused() {
    let doccano = "{\"text\": \"Ada sang.\", \"label\": [[0, 3, \"PER\"]]}\n";
    let files =
        [("a.conll", TEXT), ("d.jsonl", ""), ("none.jsonl", ""), ("doccano.jsonl", doccano)];
    let folder = folder_with(&files);
    let filter = "filter d.jsonl a.conll --decisions none.jsonl -o out.jsonl --augmented";
    let codemix = "codemix en=a.conll de=a.conll --random -o";
    for (line, name, format) in [
        ("sample a.conll -n 2 -o".to_owned(), "s.jsonl", "conll"),
        ("sample doccano.jsonl -n 1 -o".to_owned(), "s.conll", "doccano"),
        (codemix.to_owned(), "m.jsonl", "conll"),
        (filter.to_owned(), "s4.json", "conll"),
    ] {
        let line = format!("{line} {name}");
        let refused = run(folder.path(), &line.split(' ').collect::<Vec<_>>());
        let messages = text(&refused.stderr);
        assert_eq!(refused.status.code(), Some(2), "{line}: {messages}");
        let wanted = format!("`{name}` would be written as {format}, but has the ending of");
        assert!(messages.contains(&wanted), "{messages}");
        assert!(messages.contains("`melm convert FILE -o OUT`"), "{messages}");
    }
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), files.len());
    // An ending that no format has is free.
    for name in ["train.100", "train", "s.tsv"] {
        let drawn = run(folder.path(), &["sample", "a.conll", "-n", "1", "-o", name]);
        assert_eq!(drawn.status.code(), Some(0), "{name}: {}", text(&drawn.stderr));
    }
}
