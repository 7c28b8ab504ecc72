//! Grids, keys, ledgers and tables, without training.

mod grids;
mod keys;
mod ledgers;
mod tables;

use std::collections::BTreeMap;

use melm_text::{Corpus, ReadOptions, Source};

use crate::{Cell, F1, Grid, LedgerLine, Seconds, TextChoice};

pub(crate) const GRID: &str = r#"
files = "{language}/{split}.conll"
transfer.en = ["de"]
plan.generate.rounds = 2
[[grid]]
languages = ["en", "de"]
sizes = [10, 20]
draws = [1, 2]
seeds = [1]
methods = ["melm", "gold"]
budgets = ["2 epochs", "30 updates"]
[[grid]]
languages = ["en"]
sizes = [10]
draws = [1]
seeds = [1, 2]
methods = ["gold"]
budgets = ["30 updates"]
"#;

pub(crate) fn grid() -> Grid {
    Grid::parse("grid.toml", GRID).unwrap()
}

pub(crate) fn corpus(text: &str) -> Corpus {
    Corpus::read(&Source::from_text("a", text), &ReadOptions::default()).unwrap()
}

pub(crate) fn cell(method: &str) -> Cell {
    Cell {
        language: "en".to_owned(),
        size: 10,
        draw: 1,
        seed: 1,
        method: method.parse().unwrap(),
        text: TextChoice::default(),
        budget: "30 updates".parse().unwrap(),
        variant: "base".to_owned(),
    }
}

/// Returns a ledger line. Each score is a number of correct mentions, out of 1000 gold and 1000 predicted ones. It is
/// therefore F1 in tenths of a percent.
pub(crate) fn line(cell: Cell, dev: u64, tests: &[(&str, u64)]) -> LedgerLine {
    let f1 = |correct: u64| F1 {
        f1: correct as f64 / 10.0,
        by_type: BTreeMap::from([("X".to_owned(), [1000, 1000, correct])]),
    };
    LedgerLine {
        key: cell.to_string(),
        melm: "0".to_owned(),
        dev: Some(f1(dev)),
        test: tests.iter().map(|(name, correct)| ((*name).to_owned(), f1(*correct))).collect(),
        n_train: 10,
        drafts: None,
        labelled: None,
        picked: None,
        updates: 30,
        best_epoch: None,
        seconds: Seconds::default(),
        data: BTreeMap::new(),
        plan: String::new(),
        models: [String::new(), String::new()],
        seq2seq: None,
        n_parameters: 0,
        device: String::new(),
        cell,
    }
}
