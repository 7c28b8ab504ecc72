//! Tests against files that pyarrow and `datasets` wrote (`tools/make_binary_formats.py`), and with damaged files.

use std::path::PathBuf;

use proptest::prelude::*;
use serde::Deserialize;

use super::*;

#[derive(Deserialize)]
struct Expected {
    tokens: Vec<String>,
    ids: Vec<i64>,
    tags: Vec<String>,
}

fn read_file(name: &str) -> Vec<u8> {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../testdata/parquet");
    std::fs::read(folder.join(name)).unwrap()
}

fn read(name: &str) -> Result<ParquetTable, ParquetFault> {
    read_table(read_file(name), GivenNames::default())
}

fn expected() -> Vec<Expected> {
    serde_json::from_slice(&read_file("expected.json")).unwrap()
}

/// The names of the classes, in the order of their ids.
fn names() -> Vec<String> {
    ["O", "B-PER", "I-PER", "B-LOC", "I-LOC"].map(str::to_owned).to_vec()
}

#[test]
fn files_of_datasets_and_pyarrow_are_read() {
    let rows: Vec<_> = expected()
        .into_iter()
        .map(|row| ParquetRow { tokens: row.tokens, tags: TagCells::Ids(row.ids) })
        .collect();
    for name in ["datasets", "groups", "uncompressed"] {
        let table = read(&format!("{name}.parquet")).unwrap();
        assert_eq!(table.rows, rows, "{name}");
        assert_eq!(table.names, Some(names()), "{name}");
        assert_eq!(table.other_columns, ["id"], "{name}");
        assert_eq!((&*table.tokens_column, &*table.tags_column), ("tokens", "ner_tags"));
    }
    for name in ["no_names", "small_types"] {
        let given = GivenNames { classes: Some(&names()), ..GivenNames::default() };
        let table = read_table(read_file(&format!("{name}.parquet")), given).unwrap();
        assert_eq!(table.rows, rows, "{name}");
    }
    let texts = read("texts.parquet").unwrap();
    assert_eq!((&*texts.tokens_column, &*texts.tags_column), ("words", "tags"));
    assert_eq!(texts.names, None);
    let tags = expected().into_iter().map(|row| TagCells::Texts(row.tags));
    assert!(texts.rows.into_iter().map(|row| row.tags).eq(tags));
}

#[test]
fn files_that_cannot_be_read_are_refused_with_the_reason() {
    let message = |table: Result<ParquetTable, ParquetFault>| table.unwrap_err().to_string();
    assert_eq!(
        message(read("no_names.parquet")),
        "the tags in `ner_tags` are ids, but the file does not contain their names"
    );
    assert_eq!(
        message(read("zstd.parquet")),
        "the column `tokens` is compressed with zstd; only Snappy is supported"
    );
    let with_columns = |tokens, tags| {
        let given =
            GivenNames { tokens_column: tokens, tags_column: tags, ..GivenNames::default() };
        message(read_table(read_file("datasets.parquet"), given))
    };
    assert_eq!(
        with_columns(None, Some("labels")),
        "the parquet file has no column `labels`: it has `id`, `tokens`, `ner_tags`"
    );
    assert_eq!(with_columns(Some("id"), None), "the column `id` is not a list of strings");
    assert_eq!(
        with_columns(Some("ner_tags"), None),
        "the column `ner_tags` is not a list of strings"
    );
    let text = read_table(b"Ada B-PER\nsang O\n".to_vec(), GivenNames::default());
    assert!(matches!(text, Err(ParquetFault::NotParquet(_))));
}

fn write(rows: &[(Vec<String>, Vec<i64>)]) -> Vec<u8> {
    let rows: Vec<_> = rows
        .iter()
        .map(|(tokens, tags)| TaggedRow {
            tokens: tokens.iter().map(String::as_str).collect(),
            tags: tags.clone(),
        })
        .collect();
    let classes = names();
    write_table("tokens", TagColumn { name: "ner_tags", classes: &classes }, &rows)
}

#[test]
fn damaged_files_are_refused_and_never_panic() {
    let bytes = read_file("datasets.parquet");
    for n in 0..bytes.len() {
        read_table(bytes[..n].to_vec(), GivenNames::default()).unwrap_err();
    }
    for name in ["datasets", "uncompressed", "groups"] {
        let bytes = read_file(&format!("{name}.parquet"));
        for at in 0..bytes.len() {
            for change in [0x01, 0x80, 0xff] {
                let mut changed = bytes.clone();
                changed[at] ^= change;
                let _ = read_table(changed, GivenNames::default());
            }
        }
    }
}

#[test]
fn one_long_string_for_many_tokens_is_refused() {
    // The dictionary has the string once.
    let long = "x".repeat(1 << 20);
    let bytes = write(&[(vec![long; 300], vec![0; 300])]);
    assert!(bytes.len() < 10 << 20);
    let fault = read_table(bytes, GivenNames::default()).unwrap_err();
    assert_eq!(fault, ParquetFault::TooLarge { limit: "256 MiB of text".into() });
}

proptest! {
    #[test]
    fn written_rows_are_read_back(
        rows in prop::collection::vec(prop::collection::vec((".{0,8}", 0_i64..5), 0..6), 0..8),
    ) {
        let rows: Vec<(Vec<String>, Vec<i64>)> = rows.into_iter().map(|row| row.into_iter().unzip()).collect();
        let table = read_table(write(&rows), GivenNames::default()).unwrap();
        prop_assert_eq!(table.names, Some(names()));
        let to_row = |(tokens, tags)| ParquetRow { tokens, tags: TagCells::Ids(tags) };
        prop_assert_eq!(table.rows, rows.into_iter().map(to_row).collect::<Vec<_>>());
    }
}
