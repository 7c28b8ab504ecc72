//! Ledgers.

use std::fs;

use super::{cell, line};
use crate::Ledger;

#[test]
fn a_ledger_keeps_whole_lines_and_reads_all_shards() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("ledger.jsonl");
    let first = line(cell("gold"), 500, &[]);
    Ledger::open(dir.path(), "ledger.jsonl").unwrap().add(first.clone()).unwrap();
    // A killed run leaves an incomplete line.
    let text = fs::read_to_string(&path).unwrap();
    fs::write(&path, format!("{text}{}", &text[..40])).unwrap();
    let mut ledger = Ledger::open(dir.path(), "ledger.jsonl").unwrap();
    assert_eq!(ledger.lines(), std::slice::from_ref(&first));
    assert_eq!(fs::read_to_string(&path).unwrap(), text);
    ledger.add(line(cell("melm"), 510, &[])).unwrap();
    let mut shard = Ledger::open(dir.path(), "ledger-2-of-2.jsonl").unwrap();
    assert_eq!(shard.lines().len(), 2);
    let tested = line(cell("gold"), 500, &[("en", 400)]);
    assert!(shard.find(&first.cell, &first.key, &["en"]).is_none());
    shard.add(tested.clone()).unwrap();
    assert_eq!(shard.find(&first.cell, &first.key, &["en"]), Some(&tested));
    assert!(shard.find(&first.cell, "another key", &[]).is_none());
    let mut twin = first.cell.clone();
    twin.variant = "other".to_owned();
    assert!(shard.find(&twin, &first.key, &[]).is_none());
    assert_eq!(shard.find_by_key(&first.key, &["en"]), Some(&tested));
    // A second run at the same time would do the same work again.
    let error = Ledger::open(dir.path(), "ledger.jsonl").err().unwrap().to_string();
    assert!(error.contains("another run is writing to"), "{error}");
    drop(ledger);
    assert_eq!(Ledger::open(dir.path(), "ledger.jsonl").unwrap().lines().len(), 2);
    assert_eq!(Ledger::read(dir.path()).unwrap().len(), 2);
    assert!(Ledger::read(&dir.path().join("nowhere")).unwrap().is_empty());
    fs::write(&path, "{}\n").unwrap();
    let error = Ledger::open(dir.path(), "ledger.jsonl").err().unwrap().to_string();
    assert!(error.contains("ledger.jsonl`:1: column 2: missing field"), "{error}");
    assert!(error.ends_with("delete it, and its cell is run again"), "{error}");
}

#[test]
fn the_largest_counts_of_a_ledger_have_a_score() {
    let counts = [u64::MAX; 3];
    let by_type = [("PER".to_owned(), counts), ("LOC".to_owned(), counts)].into();
    assert!((crate::F1 { f1: 0.0, by_type }.percent() - 100.0).abs() < 1e-9);
}
