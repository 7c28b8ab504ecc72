//! Grids, keys, ledgers and tables without any training.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use melm_text::{Corpus, ReadOptions, Source};

use super::key::{Arithmetic, key};
use super::table::{Split as Scored, Table, csv, latex, markdown};
use super::*;
use crate::plan::{Plan, PlanTable, Preset, Size, Sizes};
use crate::run::Seed;
use crate::sample::draw;

const GRID: &str = r#"
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

fn grid() -> Grid {
    Grid::parse("grid.toml", GRID).unwrap()
}

#[test]
fn a_grid_is_the_union_of_its_blocks_and_shards_divide_it() {
    let cells = grid().cells();
    // 2 languages x 2 sizes x 2 draws x 2 methods x 2 budgets, and one cell with another seed.
    assert_eq!(cells.len(), 33);
    assert!(cells.chunk_by(Cell::is_beside).all(|group| group[0].method == System::GOLD));
    let shards = (1..=3).flat_map(|number| Shard { number, of: 3 }.part(&cells));
    let names = |cells: &mut dyn Iterator<Item = Cell>| {
        cells.map(|cell| cell.to_string()).collect::<BTreeSet<_>>()
    };
    let divided: Vec<_> = shards.collect();
    assert_eq!(divided.len(), cells.len());
    assert_eq!(names(&mut divided.into_iter()), names(&mut cells.clone().into_iter()));
    let only: Only = "method=melm,label-wise".parse().unwrap();
    assert_eq!(cells.iter().filter(|cell| only.lets(cell)).count(), 16);
    assert!("methods=melm".parse::<Only>().is_err() && "5/4".parse::<Shard>().is_err());
    assert_eq!(grid().tests_of(&cells[0]).count(), if cells[0].language == "en" { 2 } else { 1 });
}

#[test]
fn a_slip_in_a_grid_is_named() {
    for (from, to, expected) in [
        (
            "\"melm\", ",
            "\"melon\", ",
            "`melon` is no method: expected one of gold, gold-duplicated",
        ),
        ("30 updates", "30 steps", "is no budget"),
        ("{split}", "all", "`files` must hold `{split}`"),
        ("sizes = [10, 20]", "size = [10]", "unknown field `size`"),
        ("seeds = [1]", "seeds = [1]\nvariants = [\"x\"]", "there is no variant `x`"),
    ] {
        let error = Grid::parse("grid.toml", &GRID.replace(from, to)).unwrap_err().to_string();
        assert!(error.contains(expected) && error.contains("grid.toml"), "{error}");
    }
}

#[test]
fn the_shipped_grids_can_be_parsed_and_hold_the_papers_values() {
    let configs = concat!(env!("CARGO_MANIFEST_DIR"), "/../../configs/");
    let open = |name: &str| {
        Grid::parse(name, &fs::read_to_string(format!("{configs}{name}")).unwrap()).unwrap()
    };
    let mono = open("paper/mono.toml");
    assert!((mono.paper["100"]["melm"]["nl"] - 66.57).abs() < 1e-9);
    assert_eq!(mono.cells().len(), 4 * 6 * (2 * 5 * 2 + 2 * 3));
    // The paper's means are those of its columns, but for two rows that it printed 0.13 and 0.33 off.
    for grid in [mono, open("paper/cross.toml"), open("paper/multi.toml")] {
        for (method, columns) in grid.paper.values().flatten() {
            let own: Vec<_> =
                columns.iter().filter(|(name, _)| *name != "mean").map(|(_, f1)| f1).collect();
            let mean = own.iter().copied().sum::<f64>() / own.len() as f64;
            assert!((mean - columns["mean"]).abs() < 0.34, "{method}: {mean} {columns:?}");
        }
    }
    assert!(open("smoke.toml").data.is_some());
}

fn corpus(text: &str) -> Corpus {
    Corpus::read(&Source::from_text("a", text), &ReadOptions::default()).unwrap()
}

fn languages() -> Languages {
    let split = |text: &str| Split { corpus: corpus(text), fingerprint: text.to_owned() };
    let language = |name: &str| Language {
        train: split(&format!("{name} B-X\n")),
        dev: split(&format!("{name}dev B-X\n")),
        test: None,
    };
    ["en", "de"].into_iter().map(|name| (name.to_owned(), language(name))).collect()
}

#[test]
fn a_draw_is_what_a_file_of_its_sentences_would_be_read_as() {
    let text = "Bonn B-LOC\n\nAda B-PER\nof O\n\nGhent B-LOC\nand O\nRio B-LOC\n\nEve B-PER\n\n";
    let whole = corpus(text);
    for seed in 0..20 {
        let drawn = draw(4, 2, Seed(seed));
        let paragraphs: Vec<_> = text.split("\n\n").collect();
        let file: String = drawn.iter().map(|at| paragraphs[*at].to_owned() + "\n\n").collect();
        let (found, expected) = (subset(&whole, &drawn), corpus(&file));
        assert_eq!(found.types(), expected.types());
        for (found, expected) in found.sentences().iter().zip(expected.sentences()) {
            assert_eq!((found.tokens(), found.tags()), (expected.tokens(), expected.tags()));
        }
    }
    let both = gathered(&[subset(&whole, &[1]), subset(&whole, &[0])]).unwrap();
    assert_eq!(both.types(), corpus("Ada B-PER\nof O\n\nBonn B-LOC\n").types());
    let other = corpus("a I-X\nb B-X\n\nc I-X\n");
    if other.scheme() != whole.scheme() {
        assert!(gathered(&[whole, other]).is_err());
    }
}

fn plan(edits: &[&str]) -> Plan {
    let mut table = PlanTable::new(Preset::Best, Sizes::both(Size::Small));
    for edit in edits {
        table.set(edit).unwrap();
    }
    table.plan().unwrap()
}

fn arithmetic() -> Arithmetic {
    let parts = ["isa", "lm", "encoder", "vectors"].map(str::to_owned);
    let [device, masked_lm, tagger, vectors] = parts;
    Arithmetic { device, masked_lm, tagger, vectors }
}

fn cell(method: &str) -> Cell {
    Cell {
        language: "en".to_owned(),
        size: 10,
        draw: 1,
        seed: 1,
        method: method.parse().unwrap(),
        budget: "30 updates".parse().unwrap(),
        variant: "base".to_owned(),
    }
}

#[test]
fn a_key_changes_with_everything_that_can_change_the_result() {
    let base = cell("melm");
    let of = |cell: &Cell, plan: &Plan, languages: &Languages, arithmetic: &Arithmetic| {
        key(cell, (plan, 10), languages, arithmetic)
    };
    let (usual, data) = (plan(&[]), languages());
    let mut keys = BTreeSet::from([of(&base, &usual, &data, &arithmetic())]);
    let mut n = 1;
    let mut is_new = |what: &str, key: String| {
        n += 1;
        assert!(keys.insert(key), "{what} does not change the key");
    };
    for changed in [
        Cell { language: "de".into(), ..base.clone() },
        Cell { language: "en+de".into(), ..base.clone() },
        Cell { size: 11, ..base.clone() },
        Cell { draw: 2, ..base.clone() },
        Cell { seed: 2, ..base.clone() },
        Cell { budget: "30 epochs".parse().unwrap(), ..base.clone() },
        cell("melm-plain"),
        cell("label-wise"),
        cell("lwtr"),
        cell("codemix-random"),
        cell("codemix-ess"),
        cell("melm-codemix"),
        cell("gold"),
        cell("gold-duplicated"),
    ] {
        is_new(&changed.to_string(), of(&changed, &usual, &data, &arithmetic()));
    }
    for edit in [
        "tagger.learning_rate=1e-3",
        "tagger.budget=31 updates",
        "finetune.learning_rate=1e-3",
        "generate.rounds=9",
        "filter.mode=off",
        "union=false",
    ] {
        is_new(edit, of(&base, &plan(&[edit]), &data, &arithmetic()));
    }
    for part in 0..3 {
        let mut other = arithmetic();
        let parts = [&mut other.device, &mut other.masked_lm, &mut other.tagger];
        parts.into_iter().nth(part).unwrap().push('x');
        is_new("arithmetic", of(&base, &usual, &data, &other));
    }
    let mut other = languages();
    other.get_mut("en").unwrap().dev.fingerprint.push('x');
    is_new("dev", of(&base, &usual, &other, &arithmetic()));
    is_new("evaluations", key(&base, (&usual, 11), &data, &arithmetic()));
    for method in ["codemix-ess", "melm-codemix"] {
        let mut other = arithmetic();
        other.vectors.push('x');
        is_new("vectors", of(&cell(method), &usual, &data, &other));
        is_new("rate", of(&cell(method), &plan(&["codemix.rate=0.5"]), &data, &arithmetic()));
    }
    assert_eq!(n, 30);
    // What a method never reads does not: variants of it are shared.
    let key_of = |method: &str, edit: &str| of(&cell(method), &plan(&[edit]), &data, &arithmetic());
    for (method, edit) in [
        ("gold", "finetune.learning_rate=1e-3"),
        ("gold", "tagger.budget=31 updates"),
        ("gold-duplicated", "filter.mode=off"),
        ("label-wise", "generate.mask.mean=0.9"),
        ("melm", "daga.tries=3"),
        ("daga", "mulda.tries=3"),
        ("lwtr", "finetune.learning_rate=1e-3"),
        ("codemix-ess", "finetune.learning_rate=1e-3"),
        ("melm", "codemix.rate=0.5"),
    ] {
        assert_eq!(key_of(method, edit), key_of(method, "seed=5"), "{method} {edit}");
    }
    for (method, edit) in [("daga", "daga.tries=3"), ("mulda", "mulda.tries=3")] {
        assert_ne!(key_of(method, edit), key_of(method, "seed=5"), "{method} {edit}");
    }
    assert_ne!(key_of("gold-duplicated", "generate.rounds=9"), key_of("gold-duplicated", "seed=1"));
}

/// A line with these counts of correct mentions out of 1000 on both sides: F1 in tenths of a percent.
fn line(cell: Cell, dev: u64, tests: &[(&str, u64)]) -> Line {
    let f1 = |correct: u64| F1 {
        f1: correct as f64 / 10.0,
        by_type: BTreeMap::from([("X".to_owned(), [1000, 1000, correct])]),
    };
    Line {
        key: cell.to_string(),
        melm: "0".to_owned(),
        dev: f1(dev),
        test: tests.iter().map(|(name, correct)| ((*name).to_owned(), f1(*correct))).collect(),
        n_train: 10,
        drafts: None,
        updates: 30,
        best_epoch: None,
        seconds: Seconds::default(),
        data: BTreeMap::new(),
        plan: String::new(),
        models: [String::new(), String::new()],
        device: String::new(),
        cell,
    }
}

#[test]
fn a_ledger_keeps_whole_lines_and_reads_all_shards() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("ledger.jsonl");
    let first = line(cell("gold"), 500, &[]);
    Ledger::open(dir.path(), "ledger.jsonl").unwrap().add(first.clone()).unwrap();
    // A run killed in the middle of a line.
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
    assert_eq!(shard.twin(&first.key, &["en"]), Some(&tested));
    assert_eq!(Ledger::open(dir.path(), "ledger.jsonl").unwrap().lines().len(), 2);
    fs::write(&path, "{}\n").unwrap();
    let error = Ledger::open(dir.path(), "ledger.jsonl").err().unwrap().to_string();
    assert!(error.contains("ledger.jsonl`:1: missing field"), "{error}");
}

/// Gold and melm on two languages: draws 1, 2, 3 with seeds 1 and 2.
fn lines() -> Vec<Line> {
    let mut lines = Vec::new();
    for (language, base) in [("en", 600), ("de", 500)] {
        for draw in 1..=3 {
            for seed in 1..=2 {
                let at =
                    |method: &str| Cell { language: language.into(), draw, seed, ..cell(method) };
                let f1 = base + draw * 10 + seed;
                // English gains 1, 2, 3 points by draw, German 2, 2, 2; the seeds of a draw differ and cancel out.
                let gain = if language == "en" { draw * 10 } else { 20 };
                let wobble = if seed == 1 { 5 } else { 0 };
                let others: &[(&str, u64)] = &[("en", f1), ("de", f1 / 2)];
                lines.push(line(
                    at("gold"),
                    f1,
                    if language == "en" { others } else { &others[1..] },
                ));
                let f1 = f1 + gain + 2 * wobble - 5;
                let others: &[(&str, u64)] = &[("en", f1), ("de", f1 / 2)];
                lines.push(line(
                    at("melm"),
                    f1,
                    if language == "en" { others } else { &others[1..] },
                ));
            }
        }
    }
    lines
}

#[test]
fn differences_are_paired_over_draws_with_their_seeds_averaged() {
    let paper = grid().paper;
    let rows = Table::Mono.rows(&lines(), Scored::Dev, &paper);
    let melm = rows.rows.iter().find(|row| row.method != System::GOLD).unwrap();
    let close = |found: f64, expected: f64| assert!((found - expected).abs() < 1e-9, "{found}");
    let english = melm.to_gold["en"];
    // By hand: 1, 2, 3; mean 2, sd 1, t(0.975, 2) = 4.302652729749 over the root of 3.
    assert_eq!(english.n, 3);
    close(english.mean, 2.0);
    close(english.margin().unwrap(), 4.302_652_729_749_462 / 3.0_f64.sqrt());
    assert_eq!(english.verdict(), statistics::Verdict::NoDifference);
    assert_eq!(melm.to_gold["de"].verdict(), statistics::Verdict::Better);
    // Pairs over both languages: 1, 2, 3, 2, 2, 2; sd = sqrt(2/5), t(0.975, 5) = 2.570581835636.
    let mean = melm.to_gold["mean"];
    assert_eq!(mean.n, 6);
    close(mean.mean, 2.0);
    close(mean.margin().unwrap(), 2.570_581_835_636_197 * (0.4_f64 / 6.0).sqrt());
    // Gold: 61.1 .. 63.2 in English, ten lower in German.
    let gold = &rows.rows.iter().find(|row| row.method == System::GOLD).unwrap().f1;
    close(gold["en"].mean, 62.15);
    close(gold["mean"].mean, 57.15);
    assert_eq!(gold["en"].n, 6);
    let text = markdown(&rows);
    assert!(text.contains("| 10 | melm | 54.2 ± 1.0 | 64.2 ± 1.9 |"), "{text}");
    assert!(text.contains("+2.0 [+1.3, +2.7] better"), "{text}");
    assert!(text.contains("the unit is a draw of a language, its seeds averaged; 6 pairs a row"));
    assert!(latex(&rows).contains("10 & melm & 54.2 $\\pm$ 1.0 &"));
    let numbers = csv(&rows, true);
    assert!(numbers.lines().all(|line| line.split(',').count() == 14), "{numbers}");
    assert!(numbers.contains("dev,30 updates,10,base,melm,en,6,64.1"), "{numbers}");
}

#[test]
fn sizes_of_a_draw_are_one_pair_since_the_draws_are_nested() {
    let mut all = lines();
    for mut line in lines() {
        line.cell.size = 20;
        all.push(line);
    }
    let rows = Table::Mono.rows(&all, Scored::Dev, &grid().paper);
    let sizes: Vec<_> = rows.rows.iter().map(|row| row.size).collect();
    assert_eq!(sizes, [10, 10, 20, 20, usize::MAX, usize::MAX]);
    let melm = rows.rows.last().unwrap();
    let (one, both) = (rows.rows[1].to_gold["mean"], melm.to_gold["mean"]);
    assert_eq!((both.n, melm.f1["en"].n), (6, 12));
    assert!((both.mean - one.mean).abs() < 1e-9);
    assert!((both.margin().unwrap() - one.margin().unwrap()).abs() < 1e-9);
    assert!(markdown(&rows).contains("| all | melm |"));
}

#[test]
fn taggers_scored_on_other_languages_are_paired_by_draw_alone() {
    let rows = Table::Cross.rows(&lines(), Scored::Test, &grid().paper);
    assert_eq!(rows.columns, ["en→de"]);
    let melm = rows.rows.iter().find(|row| row.method != System::GOLD).unwrap();
    assert_eq!(melm.to_gold["mean"].n, 3);
    assert!(Table::Cross.rows(&lines(), Scored::Dev, &grid().paper).rows.is_empty());
    let mut joined = lines();
    joined.retain(|line| line.cell.language == "en");
    for line in &mut joined {
        line.cell.language = "en+de".to_owned();
    }
    assert!(Table::Mono.rows(&joined, Scored::Test, &grid().paper).rows.is_empty());
    let rows = Table::Multi.rows(&joined, Scored::Test, &grid().paper);
    assert_eq!(rows.columns, ["de", "en"]);
    let melm = rows.rows.iter().find(|row| row.method != System::GOLD).unwrap();
    // Two columns of one tagger are one pair.
    assert_eq!(melm.to_gold["mean"].n, 3);
}
