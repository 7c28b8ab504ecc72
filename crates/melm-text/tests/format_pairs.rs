//! Converts the example through every pair of formats, and compares the counts of what is lost with the table in the
//! guide. `cargo test -p melm-text --test format_pairs -- --ignored` writes the table anew.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::path::{Path, PathBuf};

use melm_text::{
    Encoding, Format, Loss, Part, ReadOptions, Source, WrittenFile, convert_documents,
};

const START: &str = "<!-- table of pairs: made by crates/melm-text/tests/format_pairs.rs -->\n";
const END: &str = "<!-- end of the table -->\n";

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The source that written files become when they are read from disk.
fn source_of(files: &[WrittenFile]) -> Source {
    let folder = tempfile::tempdir().unwrap();
    for file in files {
        std::fs::write(folder.path().join(format!("a.{}", file.extension)), &file.bytes).unwrap();
    }
    let path = folder.path().join(format!("a.{}", files[0].extension));
    Source::open(&path, Encoding::Utf8).unwrap()
}

fn letter(part: Part) -> char {
    match part {
        Part::Text => 'S',
        Part::Tokens | Part::Sentences => 'T',
        Part::Documents => 'D',
        Part::Boundaries => 'B',
        Part::Ids => 'I',
        Part::Metadata => 'V',
        Part::Overlaps => 'O',
        Part::Columns => 'C',
    }
}

fn cell(losses: &[Loss]) -> String {
    let parts: Vec<_> =
        losses.iter().map(|loss| format!("{}{}", letter(loss.part), loss.n)).collect();
    if parts.is_empty() { "–".to_owned() } else { parts.join(" ") }
}

fn table() -> String {
    let example = root().join("testdata/formats/label-studio.json");
    let example = Source::open(&example, Encoding::Utf8).unwrap();
    let convert = |source: &Source, to: Format| {
        convert_documents(source, &ReadOptions::default(), to, None, false).unwrap()
    };
    let mut formats: Vec<Format> = Format::all().collect();
    formats.sort_by_key(|format| format.name());
    let names: Vec<_> = formats.iter().map(|format| format!("`{}`", format.name())).collect();
    let mut text = format!("| from \\ to | {} |\n", names.join(" | "));
    text += &format!("| --- |{}\n", " --- |".repeat(formats.len()));
    for &from in &formats {
        let source = source_of(&convert(&example, from).files);
        let cells = formats.iter().map(|&to| cell(&convert(&source, to).losses));
        text += &format!("| `{}` | {} |\n", from.name(), cells.collect::<Vec<_>>().join(" | "));
    }
    text
}

fn page() -> PathBuf {
    root().join("docs/guides/formats.md")
}

/// Splits the page into the text before, in and after the table.
fn parts(text: &str) -> (&str, &str, &str) {
    let (before, rest) = text.split_once(START).unwrap();
    let (table, after) = rest.split_once(END).unwrap();
    (before, table, after)
}

#[test]
fn the_table_in_the_guide_is_fresh() {
    let text = std::fs::read_to_string(page()).unwrap();
    let (_, found, _) = parts(&text);
    assert_eq!(
        found,
        table(),
        "docs/guides/formats.md is stale: run `cargo test -p melm-text --test format_pairs -- --ignored`"
    );
}

#[test]
#[ignore = "writes the table of the guide"]
fn write_the_table() {
    let text = std::fs::read_to_string(page()).unwrap();
    let (before, _, after) = parts(&text);
    std::fs::write(page(), [before, START, &table(), END, after].concat()).unwrap();
}
