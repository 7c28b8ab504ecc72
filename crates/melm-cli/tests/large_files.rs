//! Files that are too large for a limit or for the memory, and pipes in place of files. Most are sparse: they take no room.
#![cfg(unix)]
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fs::{self, File};
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Output};

const GIB: u64 = 1 << 30;

/// Writes a sparse file that starts with `start`.
fn write_sparse(path: &Path, start: &[u8], len: u64) {
    let mut file = File::create(path).unwrap();
    file.write_all(start).unwrap();
    file.set_len(len).unwrap();
}

/// Runs a command of a shell, in which `melm` is the program. Ends it after a minute.
fn run(folder: &Path, command: &str) -> Output {
    let program = env!("CARGO_BIN_EXE_melm");
    let script = format!("melm() {{ timeout 60 {program} \"$@\"; }}; {command}");
    Command::new("sh").args(["-c", &script]).current_dir(folder).output().unwrap()
}

/// Asserts that the command failed with exit code 1, and with a message that has all of `words`.
fn assert_refused(folder: &Path, command: &str, words: &[&str]) {
    let output = run(folder, command);
    let messages = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{command}: {messages}");
    for word in words {
        assert!(messages.contains(word), "{command}: no {word} in: {messages}");
    }
}

#[test]
fn a_binary_file_has_a_limit() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    write_sparse(&path.join("a.parquet"), b"PAR1", GIB + 1);
    write_sparse(&path.join("a.spacy"), &[0x78, 0x9c, 0xff], GIB + 1);
    for name in ["a.parquet", "a.spacy"] {
        let message = format!("`{name}` is a binary file of more than 1024 MiB");
        assert_refused(path, &format!("melm check {name}"), &[&message, "hint: divide the file"]);
    }
    // A larger limit does not help if there is no memory.
    let more = "export MELM_LIMIT_FACTOR=2; ulimit -v 500000; melm check a.parquet";
    assert_refused(path, more, &["cannot read `a.parquet`: ", "out of memory"]);
}

#[test]
fn a_file_that_is_larger_than_the_memory_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    for (name, start) in [("a.parquet", &b"PAR1"[..]), ("a.spacy", &[0x78, 0x9c, 0xff])] {
        write_sparse(&path.join(name), start, GIB - 1);
        let message = format!("cannot read `{name}`: ");
        let command = format!("ulimit -v 500000; melm check {name}");
        assert_refused(path, &command, &[&message, "out of memory", "hint: divide the file"]);
    }
    let rows = "yes 'Bonn B-LOC' | head -c 800000000";
    for options in ["", "--encoding latin1"] {
        let command = format!("{rows} | (ulimit -v 500000; melm check {options} -)");
        assert_refused(path, &command, &["cannot read `standard input`: ", "out of memory"]);
    }
}

#[test]
fn files_of_settings_and_runs_have_limits() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    let write = |name: &str, start: &str, len: u64| {
        fs::create_dir_all(path.join(name).parent().unwrap()).unwrap();
        write_sparse(&path.join(name), start.as_bytes(), len);
    };
    write("plan.toml", "", (16 << 20) + 1);
    write("record/run.json", "", (16 << 20) + 1);
    write("experiment/ledger.jsonl", "", 4 * GIB + 1);
    write("drafts/run.json", "{\"command\":\"augment\"}", 21);
    write("drafts/drafts.jsonl", "", 4 * GIB + 1);
    for (command, message) in [
        ("melm config show --config plan.toml", "cannot read `plan.toml`: it has more than 16 MiB"),
        (
            "melm reproduce mono --config plan.toml -o out --dry-run",
            "cannot read `plan.toml`: it has more than 16 MiB",
        ),
        ("melm report record", "cannot read `record/run.json`: it has more than 16 MiB"),
        ("melm report experiment", "cannot read `experiment/ledger.jsonl`: it has more than 4096"),
        ("melm report drafts", "cannot read `drafts/drafts.jsonl`: it has more than 4096 MiB"),
    ] {
        assert_refused(path, command, &[message]);
    }
    for name in ["gold.jsonl", "metrics.jsonl"] {
        write("drafts/drafts.jsonl", "", 0);
        write(&format!("drafts/{name}"), "", 4 * GIB + 1);
        let message = format!("cannot read `drafts/{name}`: it has more than 4096 MiB");
        assert_refused(path, "melm report drafts", &[&message]);
        fs::remove_file(path.join("drafts").join(name)).unwrap();
    }
}

#[test]
fn pipes_in_the_folder_of_a_run_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    let make = "mkdir -p run experiment drafts && mkfifo run/run.json experiment/ledger.jsonl drafts/drafts.jsonl";
    assert!(run(path, make).status.success());
    fs::write(path.join("drafts/run.json"), "{\"command\":\"augment\"}").unwrap();
    let what = "it is a pipe or a device, not a regular file";
    for (dir, file) in
        [("run", "run.json"), ("experiment", "ledger.jsonl"), ("drafts", "drafts.jsonl")]
    {
        let message = format!("cannot read `{dir}/{file}`: {what}");
        assert_refused(path, &format!("melm report {dir}"), &[&message]);
    }
    // The gold sentences of a report are optional.
    fs::remove_file(path.join("drafts/drafts.jsonl")).unwrap();
    fs::write(path.join("drafts/drafts.jsonl"), "").unwrap();
    assert!(run(path, "mkfifo drafts/train.augmented.conll").status.success());
    let output = run(path, "melm report drafts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    // A plan that the user names may come from a pipe.
    let output = run(path, "echo 'seed = 7' | melm config show --config /dev/stdin");
    assert!(String::from_utf8_lossy(&output.stdout).contains("\nseed = 7\n"));
}
