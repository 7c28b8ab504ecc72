//! Prints the keys that commit 399eea7 computes for the lines of a ledger. `convert.sh` runs it in a checkout of that commit.
//!
//!     cargo run --example old_keys GRID.toml LEDGER.jsonl MODEL VECTORS > keys.txt
//!
//! One key a line of the ledger; `-` if the grid has no such cell. MODEL is the folder of mini, VECTORS the fingerprint of
//! the word vectors. The fingerprints of the data are taken from the ledger.

use std::collections::BTreeMap;

use melm::experiment::{Arithmetic, Bench, Grid, Language, Languages, Line, Split};
use melm::model::Pretrained;
use melm::plan::{Plan, PlanTable, Preset, Size, Sizes};
use melm_text::{Corpus, ReadOptions, Source};

fn main() {
    let args: Vec<String> = std::env::args().collect();
    let grid = Grid::parse(&args[1], &std::fs::read_to_string(&args[1]).unwrap()).unwrap();
    let text = std::fs::read_to_string(&args[2]).unwrap();
    let lines: Vec<Line> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let model = Pretrained::open(std::path::Path::new(&args[3])).unwrap();
    let fingerprint = model.fingerprint().unwrap();
    let plans: BTreeMap<String, Plan> =
        grid.variants().into_iter().map(|name| (name.clone(), plan(&grid, &name))).collect();
    let cells = grid.cells();
    let mut out = String::new();
    for line in &lines {
        if !cells.contains(&line.cell) {
            out += "-\n";
            continue;
        }
        let bench = Bench {
            grid: &grid,
            evaluations: grid.evaluations,
            languages: &languages(line),
            plans: &plans,
            masked_lm: None,
            vectors: None,
            tagger: &model,
            arithmetic: Arithmetic {
                device: line.device.clone(),
                masked_lm: fingerprint.clone(),
                tagger: fingerprint.clone(),
                vectors: args[4].clone(),
            },
            keep_taggers: None,
            clock: &|| 0.0,
        };
        out += &(bench.key(&line.cell) + "\n");
    }
    print!("{out}");
}

/// The plan of a variant, for a small model.
fn plan(grid: &Grid, variant: &str) -> Plan {
    let mut table = PlanTable::new(Preset::Best, Sizes::both(Size::Small));
    table.edit("[plan]", &toml::to_string(&grid.plan).unwrap()).unwrap();
    if let Some(edits) = grid.variants.get(variant) {
        table.edit("[variants]", &toml::to_string(edits).unwrap()).unwrap();
    }
    table.plan().unwrap()
}

/// Empty corpora with the fingerprints of a line.
fn languages(line: &Line) -> Languages {
    let split = |fingerprint: &String| Split {
        corpus: Corpus::read(&Source::from_text("a", "a O\n"), &ReadOptions::default()).unwrap(),
        fingerprint: fingerprint.clone(),
    };
    let own: Vec<_> = line.cell.languages().collect();
    let language = |name: &str| {
        let data = &line.data[name];
        Language { train: split(&data[0]), dev: data.get(1).map(split), test: None }
    };
    own.into_iter().map(|name| (name.to_owned(), language(name))).collect()
}
