//! Grids and draws.

use std::collections::BTreeSet;

use melm::plan::{ModelClass, ModelClasses, PlanTable, Preset};
use melm::random::Seed;
use melm::sample::draw;
use melm::shard::Shard;
use melm::training::EvaluationInterval;

use super::{GRID, corpus, grid};
use crate::data::{concatenate, subset};
use crate::table::Table;
use crate::{Cell, CellFilter, Dataset, Grid, MAX_CELLS, System, shard_cells};

#[test]
fn a_grid_is_the_union_of_its_blocks_and_shards_divide_it() {
    let cells = grid().cells();
    // 2 languages x 2 sizes x 2 draws x 2 methods x 2 budgets, and one cell with another seed.
    assert_eq!(cells.len(), 33);
    assert!(cells.chunk_by(Cell::shares_gold_with).all(|group| group[0].method == System::GOLD));
    let shards = (1..=3).flat_map(|at| shard_cells(&cells, Shard::new(at, 3).unwrap()));
    let names = |cells: &mut dyn Iterator<Item = Cell>| {
        cells.map(|cell| cell.to_string()).collect::<BTreeSet<_>>()
    };
    let divided: Vec<_> = shards.collect();
    assert_eq!(divided.len(), cells.len());
    assert_eq!(names(&mut divided.into_iter()), names(&mut cells.clone().into_iter()));
    let filter: CellFilter = "method=melm,label-wise".parse().unwrap();
    assert_eq!(cells.iter().filter(|cell| filter.allows(cell)).count(), 16);
    assert!("methods=melm".parse::<CellFilter>().is_err());
    assert_eq!(
        grid().test_languages(&cells[0]).count(),
        if cells[0].language == "en" { 2 } else { 1 }
    );
}

#[test]
fn a_mistake_in_a_grid_is_named() {
    for (from, to, expected) in [
        (
            "\"melm\", ",
            "\"melon\", ",
            "`melon` is not a method: expected one of gold, gold-duplicated",
        ),
        ("30 updates", "30 steps", "is not a valid budget"),
        ("{split}", "all", "`files` must contain `{split}`"),
        ("sizes = [10, 20]", "size = [10]", "unknown field `size`"),
        ("seeds = [1]", "seeds = [1]\nvariants = [\"x\"]", "there is no variant `x`"),
    ] {
        let error = Grid::parse("grid.toml", &GRID.replace(from, to)).unwrap_err().to_string();
        assert!(error.contains(expected) && error.contains("grid.toml"), "{error}");
    }
}

#[test]
fn a_grid_with_too_many_cells_is_refused() {
    let seeds: Vec<String> = (0..=MAX_CELLS / 32).map(|seed| seed.to_string()).collect();
    let text = GRID.replacen("seeds = [1]", &format!("seeds = [{}]", seeds.join(", ")), 1);
    let error = Grid::parse("grid.toml", &text).unwrap_err().to_string();
    assert!(error.contains("it has more than 1000000 cells"), "{error}");
}

#[test]
fn the_built_in_grids_have_the_papers_values() {
    let mono = Grid::built_in(Table::Mono);
    assert!((mono.paper["100"]["melm"]["nl"] - 66.57).abs() < 1e-9);
    assert_eq!(mono.cells().len(), 4 * 9 * (2 * 5 * 2 + 2 * 3));
    // The paper's means are the means of its columns, except for two rows that are 0.13 and 0.33 off.
    for grid in [mono, Grid::built_in(Table::Cross), Grid::built_in(Table::Multi)] {
        for (method, columns) in grid.paper.values().flatten() {
            let own: Vec<_> =
                columns.iter().filter(|(name, _)| *name != "mean").map(|(_, f1)| f1).collect();
            let mean = own.iter().copied().sum::<f64>() / own.len() as f64;
            assert!((mean - columns["mean"]).abs() < 0.34, "{method}: {mean} {columns:?}");
        }
    }
    assert!(Grid::smoke().data.is_some());
    let masking = Grid::built_in(Table::Masking);
    assert_eq!(masking.variants().len(), 9);
    let names: BTreeSet<_> = masking.paper["any"].keys().cloned().collect();
    assert_eq!(names, masking.variants().into_iter().collect());
    assert!((masking.paper["any"]["eta 0.7, mu 0.5"]["mean"] - 78.56).abs() < 1e-9);
    assert_eq!(Grid::built_in(Table::Rounds).cells().len(), 2 * 6 * 3);
    assert_eq!(Grid::built_in(Table::AddEntity).cells().len(), 4 * 4 * 5);
}

#[test]
fn the_tables_that_share_taggers_have_the_same_cells_and_settings() {
    for (part, whole) in [
        (Table::Costs, Table::Mono),
        (Table::Cross, Table::Mono),
        (Table::CostsMulti, Table::Multi),
    ] {
        let [part, whole] = [part, whole].map(Grid::built_in);
        let (cells, known) = (part.cells(), whole.cells());
        assert!(!cells.is_empty());
        for cell in cells {
            assert!(known.contains(&cell), "{} has no cell {cell}", whole.name);
            let tests: Vec<_> = part.test_languages(&cell).collect();
            assert_eq!(tests, whole.test_languages(&cell).collect::<Vec<_>>());
        }
        assert_eq!(part.plan, whole.plan, "{}", part.name);
        assert_eq!(part.evaluations, whole.evaluations, "{}", part.name);
        assert_eq!(part.evaluate_every, whole.evaluate_every, "{}", part.name);
    }
}

#[test]
fn budgets_decide_how_often_dev_is_evaluated() {
    let every = |text: &str, budget: &str| {
        let grid = Grid::parse("grid.toml", &format!("{text}\n{GRID}")).unwrap();
        let plan = PlanTable::new(Preset::Best, ModelClasses::both(ModelClass::MINI)).plan();
        let mut settings = plan.unwrap().tagger;
        grid.set_evaluations(&mut settings, budget.parse().unwrap());
        settings.training.evaluate_every
    };
    let epochs = |n: u64| EvaluationInterval::Epochs(n.try_into().unwrap());
    // The preset of mini evaluates after every third epoch.
    assert_eq!(every("", "10 epochs"), epochs(3));
    assert_eq!(every("evaluate_every = 1", "10 epochs"), epochs(1));
    let thirty = EvaluationInterval::updates(30.try_into().unwrap());
    assert_eq!(every("evaluate_every = 1", "300 updates"), thirty);
}

#[test]
fn a_draw_equals_a_file_of_its_sentences() {
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
    let both = concatenate(&[subset(&whole, &[1]), subset(&whole, &[0])]).unwrap();
    assert_eq!(both.types(), corpus("Ada B-PER\nof O\n\nBonn B-LOC\n").types());
    let other = corpus("a I-X\nb B-X\n\nc I-X\n");
    if other.scheme() != whole.scheme() {
        assert!(concatenate(&[whole, other]).is_err());
    }
}

#[test]
fn a_fingerprint_depends_on_scheme_tokens_and_tags_alone() {
    let fingerprint = |text: &str| Dataset::new(corpus(text)).fingerprint().to_owned();
    let base = fingerprint("Ada B-PER\nof O\n\nRio B-LOC\n");
    assert_eq!(base, fingerprint("Ada NE B-PER\nof IN O\n\nRio NE B-LOC\n\n\n"));
    for other in [
        "Ada B-PER\nof O\nRio B-LOC\n",
        "Ada B-PER\nof O\n\nRio B-PER\n",
        "Eve B-PER\nof O\n\nRio B-LOC\n",
    ] {
        assert_ne!(base, fingerprint(other), "{other}");
    }
    // The ledgers of the repository contain fingerprints and keys, which therefore must not change by accident.
    assert_eq!(base, "af07e55b30d700cc911a0b43dfbc51fe3c0fba87f4c68729fa2fe53d4afb9cef");
}
