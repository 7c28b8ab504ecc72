//! Runs the `console` blocks of the README and the guides, and compares their output with the pages.
//!
//! A block contains commands (`$ melm …`), each followed by its standard output and error. It runs in a folder with
//! `examples/`. `…` stands for any text within a line; alone on a line it stands for any lines. Commands other than
//! `melm` are not run.
//!
//! `trycmd` was considered and not used: it runs commands without a shell, needs a folder beside each page, and writes
//! wildcards and exit codes in a syntax (`[..]`, `? 1`) that readers of the pages would see.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

struct Step {
    command: String,
    expected: Vec<String>,
}

fn steps(page: &str) -> Vec<Step> {
    let mut steps: Vec<Step> = Vec::new();
    let mut inside = false;
    for line in page.lines() {
        if line.starts_with("```") {
            inside = line == "```console";
        } else if inside {
            if let Some(command) = line.strip_prefix("$ ") {
                steps.push(Step { command: command.to_owned(), expected: Vec::new() });
            } else if let Some(step) = steps.last_mut() {
                step.expected.push(line.to_owned());
            }
        }
    }
    steps.retain(|step| step.command.starts_with("melm "));
    steps
}

/// Runs a command line in a new shell, with the tested `melm` first in PATH. Returns the lines of its output.
fn run(command: &str, folder: &Path) -> Vec<String> {
    let out = folder.join(".out");
    let file = File::create(&out).unwrap();
    let bin = Path::new(env!("CARGO_BIN_EXE_melm")).parent().unwrap();
    let path = format!("{}:/usr/bin:/bin", bin.display());
    let mut shell = Command::new("sh");
    shell.arg("-c").arg(command).current_dir(folder).env("PATH", path);
    shell.stdout(file.try_clone().unwrap()).stderr(file).status().unwrap();
    fs::read_to_string(&out).unwrap().lines().map(|line| line.trim_end().to_owned()).collect()
}

fn matches(expected: &[String], actual: &[String]) -> bool {
    match (expected, actual) {
        ([], []) => true,
        ([first, rest @ ..], _) if first == "…" => {
            (0..=actual.len()).any(|skip| matches(rest, &actual[skip..]))
        }
        ([first, rest @ ..], [line, more @ ..]) => matches_line(first, line) && matches(rest, more),
        _ => false,
    }
}

fn matches_line(expected: &str, actual: &str) -> bool {
    let mut rest = actual;
    let parts: Vec<&str> = expected.trim_end().split('…').collect();
    for (at, part) in parts.iter().enumerate() {
        let found = if at == 0 { rest.starts_with(part).then_some(0) } else { rest.find(part) };
        let Some(start) = found else { return false };
        rest = &rest[start + part.len()..];
    }
    parts.last().is_some_and(|last| last.is_empty()) || rest.is_empty()
}

fn copy_examples(folder: &Path) {
    for example in ["examples/politics", "examples/languages"] {
        let to = folder.join(example);
        fs::create_dir_all(&to).unwrap();
        for entry in fs::read_dir(root().join(example)).unwrap() {
            let entry = entry.unwrap();
            fs::copy(entry.path(), to.join(entry.file_name())).unwrap();
        }
    }
}

#[test]
fn console_blocks_print_what_the_pages_show() {
    let mut pages = vec![root().join("README.md")];
    let guides = fs::read_dir(root().join("docs/guides")).unwrap();
    pages.extend(guides.map(|entry| entry.unwrap().path()));
    pages.sort();
    let mut failures = Vec::new();
    let mut n = 0;
    for page in pages {
        let folder = tempfile::tempdir().unwrap();
        copy_examples(folder.path());
        for step in steps(&fs::read_to_string(&page).unwrap()) {
            n += 1;
            let actual = run(&step.command, folder.path());
            let mut expected = step.expected.clone();
            while expected.last().is_some_and(String::is_empty) {
                expected.pop();
            }
            let mut actual = actual;
            while actual.last().is_some_and(String::is_empty) {
                actual.pop();
            }
            if !matches(&expected, &actual) {
                let (name, text) = (page.display(), actual.join("\n"));
                failures.push(format!("{name}: $ {}\n--- printed:\n{text}", step.command));
            }
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n\n"));
    assert!(n >= 5, "only {n} commands found");
}

#[test]
fn the_matcher_rejects_wrong_output() {
    let lines = |text: &str| text.lines().map(str::to_owned).collect::<Vec<_>>();
    assert!(matches(&lines("a … c\n…\nz"), &lines("a b c\nx\ny\nz")));
    assert!(!matches(&lines("a … c\nz"), &lines("a b c\nx\nz")));
    assert!(!matches(&lines("a"), &lines("ab")));
    assert!(!matches(&lines("a\nb"), &lines("a")));
}
