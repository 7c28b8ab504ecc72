//! Which grid, which of its cells, and the files they need.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use melm::files::Fingerprint;
use melm_eval::table::Table;
use melm_eval::{Cell, Grid, Language, Languages, Only, Split, System};

use crate::args::{Reproduce, Subject};
use crate::data::Data;
use crate::failure::Failure;
use crate::settings;
use crate::terminal::Terminal;

/// The grids that are part of the program: the paper's, and the small one.
const BUILT_IN: [(&str, &str); 8] = [
    ("configs/paper/mono.toml", include_str!("../../../../../configs/paper/mono.toml")),
    ("configs/paper/cross.toml", include_str!("../../../../../configs/paper/cross.toml")),
    ("configs/paper/multi.toml", include_str!("../../../../../configs/paper/multi.toml")),
    ("configs/paper/masking.toml", include_str!("../../../../../configs/paper/masking.toml")),
    ("configs/paper/rounds.toml", include_str!("../../../../../configs/paper/rounds.toml")),
    ("configs/paper/add-entity.toml", include_str!("../../../../../configs/paper/add-entity.toml")),
    ("configs/paper/costs.toml", include_str!("../../../../../configs/paper/costs.toml")),
    ("configs/smoke.toml", include_str!("../../../../../configs/smoke.toml")),
];

/// The grid of the options, and what it is called.
pub(super) fn open(command: &Reproduce) -> Result<(String, Grid), Failure> {
    let table = match command.subject {
        Subject::Table(table) => table,
        Subject::Predictions | Subject::Entities => Table::Mono,
    };
    if command.smoke && !matches!(table, Table::Mono | Table::Costs) {
        return Err(Failure::Usage {
            message: format!("`--smoke` is a grid of mono, not of {}", table.name()),
            hint: "write a small grid of your own for `--config`: docs/guides/experiments.md",
        });
    }
    let built_in = match table {
        _ if command.smoke => BUILT_IN[7],
        Table::Mono => BUILT_IN[0],
        Table::Cross => BUILT_IN[1],
        Table::Multi => BUILT_IN[2],
        Table::Costs => BUILT_IN[6],
        Table::Masking => BUILT_IN[3],
        Table::AddEntity => BUILT_IN[5],
        Table::Rounds => BUILT_IN[4],
    };
    let (name, text) = match &command.config {
        Some(path) => settings::read(path)?,
        None => (built_in.0.to_owned(), built_in.1.to_owned()),
    };
    let mut grid = Grid::parse(&name, &text)?;
    if !command.seed.is_empty() {
        for block in &mut grid.grid {
            block.seeds.clone_from(&command.seed);
        }
    }
    Ok((name, grid))
}

/// The cells of the grid that `--only` leaves.
pub(super) fn cells(command: &Reproduce, grid: &Grid) -> Result<Vec<Cell>, Failure> {
    let mut cells = grid.cells();
    check_only(&command.only, &cells)?;
    cells.retain(|cell| command.only.iter().all(|only| only.lets(cell)));
    if cells.is_empty() {
        return Err(Failure::Usage {
            message: "`--only` leaves no cell of the grid".into(),
            hint: "look at the grid's cells with `--dry-run`",
        });
    }
    Ok(cells)
}

/// That a value of `--only` is none is a slip, not a wish for nothing.
pub(super) fn check_only(only: &[Only], cells: &[Cell]) -> Result<(), Failure> {
    match only.iter().find_map(|only| only.fault(cells.iter())) {
        Some(message) => {
            Err(Failure::Usage { message, hint: "see `--only` in `melm reproduce --help`" })
        }
        None => Ok(()),
    }
}

/// Reads what the cells need. Without `--test` no test file is opened.
pub(super) fn data(
    command: &Reproduce,
    name: &str,
    grid: &Grid,
    cells: &[Cell],
    terminal: &Terminal,
) -> Result<Languages, Failure> {
    let folder =
        command.data.as_deref().or(grid.data.as_deref()).ok_or_else(|| Failure::Usage {
            message: format!("the grid `{name}` needs data"),
            hint: "name its folder with `--data DIR`, or try `--smoke` on the shipped example",
        })?;
    let read = |language: &str, split: &str| -> Result<Split, Failure> {
        let path = grid.file(folder, language, split);
        read(&path, command, terminal)
    };
    let tests: BTreeSet<&str> = if command.test {
        cells.iter().flat_map(|cell| grid.tests_of(cell)).collect()
    } else {
        BTreeSet::new()
    };
    let own: BTreeSet<&str> = cells.iter().flat_map(Cell::languages).collect();
    let mut languages = BTreeMap::new();
    for language in own.union(&tests) {
        let test = tests.contains(language).then(|| read(language, "test")).transpose()?;
        let (train, dev) = (read(language, "train")?, Some(read(language, "dev")?));
        let own = cells.iter().filter(|cell| cell.languages().any(|one| one == *language));
        let path = grid.file(folder, language, "train");
        check_sizes((&path, train.corpus.sentences().len()), &own.collect::<Vec<_>>(), terminal)?;
        languages.insert((*language).to_owned(), Language { train, dev, test });
    }
    Ok(languages)
}

/// A file must have what its cells draw; where they draw all of it, draws are no different from each other.
fn check_sizes(
    (path, n): (&Path, usize),
    cells: &[&Cell],
    terminal: &Terminal,
) -> Result<(), Failure> {
    // Those that add extra gold take as much again.
    let takes = |cell: &Cell| match cell.method {
        System::AddEntity | System::AddContext => 2 * cell.size,
        _ => cell.size,
    };
    let path = path.display();
    if let Some(size) = cells.iter().map(|cell| takes(cell)).find(|size| *size > n) {
        return Err(Failure::Impossible {
            message: format!("the grid asks for {size} sentences; `{path}` has {n}"),
            hint: "leave the size out, for instance with `--only size=…`".into(),
        });
    }
    let all = cells.iter().filter(|cell| cell.size == n);
    let draws: BTreeSet<u64> = all.map(|cell| cell.draw).collect();
    if draws.len() > 1 {
        let times = draws.len();
        terminal.say(&format!(
            "`{path}`: all {n} sentences are drawn {times} times; draws are the same then, and their intervals mean nothing"
        ));
    }
    Ok(())
}

fn read(path: &Path, command: &Reproduce, terminal: &Terminal) -> Result<Split, Failure> {
    if path.try_exists().is_ok_and(|exists| !exists) {
        return Err(Failure::Impossible {
            message: format!("the grid needs `{}`, and it is not there", path.display()),
            hint: if command.smoke && command.data.is_none() {
                "the example is part of melm's repository: run it there, or name a copy of examples/politics with `--data DIR`".into()
            } else {
                "`files` in the grid says where data lies in `--data DIR`; `--only language=…` leaves others out".into()
            },
        });
    }
    let data = Data::read(path, &command.reading, terminal)?;
    let mut fingerprint = Fingerprint::default();
    data.add_to(&mut fingerprint);
    Ok(Split { corpus: data.corpus().clone(), fingerprint: fingerprint.finish() })
}
