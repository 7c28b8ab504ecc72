//! Runs every row of `docs/reference/bad-inputs.md` and compares the messages with the page.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::path::Path;
use std::process::{Command, Stdio};

const PAGE: &str = include_str!("../../../docs/reference/bad-inputs.md");

/// Files that a row of text cannot contain, and their names in the test data.
const BINARY_FILES: [(&str, &str); 4] = [
    ("lemmas.spacy", "spacy/no_mentions.spacy"),
    ("ids.parquet", "parquet/no_names.parquet"),
    ("nulls.parquet", "parquet/nulls.parquet"),
    ("zstd.parquet", "parquet/zstd.parquet"),
];

struct Row<'a> {
    what: &'a str,
    input: Vec<u8>,
    command: &'a str,
    exit: i32,
    lines: Vec<&'a str>,
}

fn rows() -> Vec<Row<'static>> {
    let body = PAGE.lines().skip_while(|line| !line.starts_with("| --- ")).skip(1);
    body.filter(|line| line.starts_with("| "))
        .map(|line| {
            let cells: Vec<&str> = line.trim_matches('|').split(" | ").map(str::trim).collect();
            let [what, input, command, exit, lines] = cells[..] else { panic!("cells of {line}") };
            let lines = lines.split("<br>").map(code).collect();
            let input = unescape(code(input));
            Row { what, input, command: code(command), exit: exit.parse().unwrap(), lines }
        })
        .collect()
}

/// Returns the text between back-ticks.
fn code(cell: &str) -> &str {
    cell.trim_matches('`').trim()
}

fn unescape(text: &str) -> Vec<u8> {
    let mut bytes = text.bytes();
    let mut out = Vec::new();
    while let Some(byte) = bytes.next() {
        if byte != b'\\' {
            out.push(byte);
            continue;
        }
        out.push(match bytes.next() {
            Some(b'n') => b'\n',
            Some(b't') => b'\t',
            Some(b'r') => b'\r',
            Some(b'\\') => b'\\',
            Some(b'x') => {
                let digits = [bytes.next().unwrap(), bytes.next().unwrap()];
                u8::from_str_radix(std::str::from_utf8(&digits).unwrap(), 16).unwrap()
            }
            other => panic!("escape {other:?}"),
        });
    }
    out
}

fn run(row: &Row<'_>, folder: &Path) -> Result<(), String> {
    std::fs::write(folder.join("in"), &row.input).unwrap();
    std::fs::write(folder.join("gold.conll"), "Ada B-PER\nsang O\n\n").unwrap();
    std::fs::write(folder.join("pair.txt"), "Ada sang").unwrap();
    std::fs::write(folder.join("pair.ann"), "T1 PER 0 3 Ada\n").unwrap();
    std::fs::create_dir(folder.join("folder")).unwrap();
    for (name, from) in BINARY_FILES {
        let from = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata").join(from);
        std::fs::copy(from, folder.join(name)).unwrap();
    }
    let output = Command::new(env!("CARGO_BIN_EXE_melm"))
        .args(row.command.split(' '))
        .current_dir(folder)
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let messages = String::from_utf8(output.stderr).unwrap();
    if output.status.code() != Some(row.exit) {
        return Err(format!("{}: exit {:?}\n{messages}", row.what, output.status.code()));
    }
    let missing = row.lines.iter().find(|line| !messages.lines().any(|l| l.trim() == **line));
    missing.map_or(Ok(()), |line| Err(format!("{}: no line `{line}` in\n{messages}", row.what)))
}

#[test]
fn every_row_of_the_page_is_correct() {
    let rows = rows();
    assert!(rows.len() >= 25, "only {} rows", rows.len());
    let failures: Vec<String> = rows
        .iter()
        .filter_map(|row| {
            assert!(!row.lines.is_empty() && row.lines[0].starts_with("error: "), "{}", row.what);
            run(row, tempfile::tempdir().unwrap().path()).err()
        })
        .collect();
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}
