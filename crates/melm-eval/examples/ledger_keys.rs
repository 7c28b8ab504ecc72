//! Prints the key of each line of a ledger, as this version computes it. `tools/convert_ledgers` uses it.
//!
//!     cargo run --example ledger_keys -- GRID.toml LEDGER.jsonl MODEL VECTORS > keys.txt
//!     cargo run --example ledger_keys -- data FILE… > fingerprints.txt
//!
//! The first form prints one key for each line of the ledger, or `-` if the grid has no such cell. MODEL is the folder
//! of the model, VECTORS the fingerprint of the word vectors. The fingerprints of the data are taken from the ledger.
//! The second form prints the fingerprint of each labelled file.
#![expect(clippy::unwrap_used, clippy::print_stdout, reason = "a tool for developers")]

use std::path::Path;

use melm::models::Pretrained;
use melm::plan::{ModelClass, ModelClasses, Preset};
use melm_eval::{
    Cell, CellKey, DataKey, Dataset, Error, Fingerprints, Grid, LedgerLine, Plans, TextKeys,
};
use melm_text::{Corpus, ReadOptions, Source};

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    if args[0] == "data" {
        for path in &args[1..] {
            let text = std::fs::read_to_string(path).unwrap();
            let source = Source::from_text(path, &text);
            let corpus = Corpus::read(&source, &ReadOptions::default()).unwrap();
            println!("{}", Dataset::new(corpus).fingerprint());
        }
        return;
    }
    let grid = Grid::parse(&args[0], &std::fs::read_to_string(&args[0]).unwrap()).unwrap();
    let classes = ModelClasses::both(ModelClass::MINI);
    let plans = Plans::new::<Error>(&grid, Preset::Best, classes, &|_| Ok(())).unwrap();
    let model = Pretrained::open(Path::new(&args[2])).unwrap().fingerprint().unwrap();
    let cells = grid.cells();
    for text in std::fs::read_to_string(&args[1]).unwrap().lines() {
        let line: LedgerLine = serde_json::from_str(text).unwrap();
        if cells.contains(&line.cell) {
            println!("{}", key(&line, &grid, &plans, &model, &args[3]));
        } else {
            println!("-");
        }
    }
}

/// Returns the key of the cell of a ledger line, computed with the data and the device that the line states.
fn key(line: &LedgerLine, grid: &Grid, plans: &Plans, model: &str, vectors: &str) -> String {
    let fingerprints = Fingerprints {
        arithmetic: line.device.clone(),
        masked_lm: model.to_owned(),
        tagger: model.to_owned(),
        seq2seq: String::new(),
        vectors: vectors.to_owned(),
    };
    let cell: &Cell = &line.cell;
    let data = cell.languages().map(|language| {
        let own = &line.data[language];
        DataKey { dev: own.get(1).map(String::as_str), language, train: &own[0] }
    });
    let plan = plans.variant(&cell.variant);
    let (data, text) = (data.collect(), TextKeys::default());
    let key = CellKey::new(cell, plan, grid.evaluations.get(), data, text, &fingerprints);
    key.with_picking(grid.picking).digest()
}
