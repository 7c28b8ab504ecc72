//! `melm reproduce`: the paper's comparison, as a grid of taggers and a table.

mod analyses;
mod grids;
mod workshop;

use std::collections::BTreeSet;
use std::sync::Mutex;

use melm::augment::Method;
use melm::files::{sha256, write_shared};
use melm_eval::table::{Rows, Split, Table, costs, csv, figures, latex, markdown};
use melm_eval::{Cell, Grid, Ledger, Line, Paper, System, Tally};

use crate::args::{Reproduce, Subject};
use crate::failure::Failure;
use crate::output::{self, Output};
use crate::terminal::{Terminal, count};

pub(crate) use workshop::Workshop;

pub(crate) fn run(command: &Reproduce, terminal: &Terminal) -> Result<(), Failure> {
    match command.subject {
        Subject::Table(table) => make_table(command, table, terminal),
        Subject::Predictions | Subject::Entities
            if command.table_only
                || command.shard.is_some()
                || command.keep_taggers
                || command.test =>
        {
            Err(Failure::Usage {
                message: "predictions and entities have no ledger, and open no test set".into(),
                hint: "leave `--table-only`, `--shard`, `--keep-taggers` and `--test` out",
            })
        }
        Subject::Predictions => {
            analyses::predictions(command, terminal).map_err(|failure| failure.lost(""))
        }
        Subject::Entities => {
            analyses::entities(command, terminal).map_err(|failure| failure.lost(""))
        }
    }
}

fn make_table(command: &Reproduce, table: Table, terminal: &Terminal) -> Result<(), Failure> {
    let (name, grid) = grids::open(command)?;
    if command.table_only {
        let lines = chosen(command, &grid.cells(), &ledger_of(command)?, terminal)?;
        return finish((command, table), &lines, &grid.paper, terminal);
    }
    let cells = grids::cells(command, &grid)?;
    check_table(command, table, &grid, &cells)?;
    let data = grids::data(command, &name, &grid, &cells, terminal)?;
    let workshop = Workshop::new((&command.comparing, &name), &grid, data, terminal)?;
    let taggers = command.keep_taggers.then(|| command.out.join("taggers"));
    let bench = workshop.bench(taggers.as_deref());
    let needs_vectors = |cell: &Cell| cell.method.drafts().is_some_and(Method::has_vectors);
    if let Some(cell) = cells.iter().find(|cell| bench.vectors.is_none() && needs_vectors(cell)) {
        let language = cell.languages().next().unwrap_or_default().to_owned();
        return Err(melm::Error::NoVectorsOf { language }.into());
    }
    let (part, file) = match command.shard {
        Some(shard) => {
            (shard.part(&cells), format!("ledger-{}-of-{}.jsonl", shard.number, shard.of))
        }
        None => (cells.clone(), "ledger.jsonl".to_owned()),
    };
    terminal.say(&workshop.described(&part));
    if command.dry_run {
        let known = Ledger::read(&command.out)?;
        let state = |cell: &Cell| if bench.is_known(cell, &known) { " (known)" } else { "" };
        let lines = part.iter().map(|cell| format!("{cell}{}\n", state(cell)));
        return output::print(&lines.collect::<String>());
    }
    let ledger = Mutex::new(Ledger::open(&command.out, &file)?);
    write_plans(command, &part, &|cell| bench.plan_of(cell))?;
    let tally = workshop.run(&bench, &part, &ledger, terminal)?;
    drop(ledger);
    say_tally(tally, terminal);
    // Read again: what other shards have done meanwhile belongs to the table too.
    let mut lines = Ledger::read(&command.out)?;
    lines.retain(|line| cells.contains(&line.cell) && line.key == bench.key(&line.cell));
    finish((command, table), &lines, &grid.paper, terminal)
}

/// That a table would stay empty is said before its cells are run.
fn check_table(
    command: &Reproduce,
    table: Table,
    grid: &Grid,
    cells: &[Cell],
) -> Result<(), Failure> {
    let has = |fits: &dyn Fn(&Cell) -> bool| cells.iter().any(fits);
    let is_joined = |cell: &Cell| cell.languages().count() > 1;
    let (message, hint) = match table {
        Table::Cross if !command.test && !command.dry_run => (
            "cross scores taggers on the test sets of other languages",
            "when all choices are made: `--test`",
        ),
        Table::Cross if !has(&|cell| grid.transfer.contains_key(&cell.language)) => (
            "no tagger of the grid is scored on another language",
            "name some in it: `transfer.en = [\"de\"]`",
        ),
        Table::Costs if !has(&|cell| cell.method == System::Method(Method::Melm)) => (
            "costs are those of the method melm, and no cell has it",
            "leave it in `--only`, or add it to the grid",
        ),
        Table::Multi if !has(&is_joined) => (
            "multi is of taggers of several languages, and no cell has one",
            "join languages in the grid: `languages = [\"en+de\"]`",
        ),
        Table::Mono | Table::AddEntity if !has(&|cell| !is_joined(cell)) => {
            ("all taggers of the grid are of several languages", "that is `melm reproduce multi`")
        }
        _ => return Ok(()),
    };
    Err(Failure::Usage { message: message.into(), hint })
}

/// The lines of a folder that must have some.
fn ledger_of(command: &Reproduce) -> Result<Vec<Line>, Failure> {
    let lines = Ledger::read(&command.out)?;
    if lines.is_empty() {
        return Err(Failure::Impossible {
            message: format!("there is no ledger in `{}`, or nothing in it", command.out.display()),
            hint: "name the folder of a run with `-o DIR`, or run the grid without `--table-only`"
                .into(),
        });
    }
    Ok(lines)
}

fn say_tally(tally: Tally, terminal: &Terminal) {
    let mut said = vec![format!("{} run", count(tally.n_run, "cell"))];
    said.extend((tally.n_known > 0).then(|| format!("{} known", tally.n_known)));
    said.extend((tally.n_shared > 0).then(|| {
        format!("{} the same as another, since no setting they read differs", tally.n_shared)
    }));
    said.extend((tally.n_diverged > 0).then(|| format!("{} diverged", tally.n_diverged)));
    terminal.say(&said.join(", "));
}

/// The lines that `--only` leaves; of several of one cell the last.
fn chosen(
    command: &Reproduce,
    cells: &[Cell],
    lines: &[Line],
    terminal: &Terminal,
) -> Result<Vec<Line>, Failure> {
    let known = lines.iter().map(|line| line.cell.clone());
    grids::check_only(&command.only, &cells.iter().cloned().chain(known).collect::<Vec<_>>())?;
    let mut chosen: Vec<Line> = Vec::new();
    let mut n_old = 0;
    for line in lines.iter().filter(|line| command.only.iter().all(|only| only.lets(&line.cell))) {
        match chosen.iter_mut().find(|other| other.cell == line.cell) {
            Some(other) => {
                *other = line.clone();
                n_old += 1;
            }
            None => chosen.push(line.clone()),
        }
    }
    let devices: BTreeSet<&str> = chosen.iter().map(|line| line.device.as_str()).collect();
    if devices.len() > 1 {
        let all = devices.into_iter().collect::<Vec<_>>().join(" and ");
        terminal.say(&format!("the table mixes cells computed on {all}"));
    }
    if n_old > 0 {
        let n = count(n_old, "cell");
        terminal
            .say(&format!("{n} run before with other data, settings or device: the last counts"));
    }
    if chosen.is_empty() {
        return Err(Failure::Usage {
            message: "`--only` leaves no line of the ledger".into(),
            hint: "leave it out to see them all",
        });
    }
    Ok(chosen)
}

/// The whole plans that lines name, so that each can be run again.
fn write_plans(
    command: &Reproduce,
    cells: &[Cell],
    plan_of: &dyn Fn(&Cell) -> melm::plan::Plan,
) -> Result<(), Failure> {
    let folder = command.out.join("plans");
    std::fs::create_dir_all(&folder)
        .map_err(|source| Output::failed(&folder.display().to_string(), source))?;
    for cell in cells {
        let text = plan_of(cell).to_toml();
        let path = folder.join(format!("{}.toml", &sha256(text.as_bytes())[..16]));
        if !path.exists() {
            write_shared(&path, text.as_bytes())?;
        }
    }
    Ok(())
}

/// Writes the tables and figures, and prints the one that was asked for.
fn finish(
    (command, table): (&Reproduce, Table),
    lines: &[Line],
    paper: &Paper,
    terminal: &Terminal,
) -> Result<(), Failure> {
    let stem = match table {
        Table::Mono => "table".to_owned(),
        other => format!("table-{}", other.name()),
    };
    let write = |name: String, text: String| write_shared(&command.out.join(name), text.as_bytes());
    // Nothing is written over what is there. That a shard has nothing yet is no failure.
    let nothing = |what: &str| {
        let message = format!("the ledger of `{}` has {what}", command.out.display());
        if command.table_only {
            let hint = "run the grid without `--table-only`; with `--test` for test scores".into();
            return Err(Failure::Impossible { message, hint });
        }
        terminal.say(&format!("no table yet: {message}"));
        Ok(())
    };
    if table == Table::Costs {
        let Some(text) = costs(lines, paper) else { return nothing("no cell of the method melm") };
        write(format!("{stem}.md"), text.clone())?;
        return output::print(&text);
    }
    let tables = [Split::Dev, Split::Test].map(|split| table.rows(lines, split, paper));
    let has_rows = |table: &&Rows| !table.rows.is_empty();
    let [dev, test] = &tables;
    let wants_test = command.test || table == Table::Cross;
    let shown = if wants_test && has_rows(&test) { test } else { dev };
    if !has_rows(&shown) {
        return nothing("no scores for this table");
    }
    let texts = |write: &dyn Fn(&Rows) -> String| {
        tables.iter().filter(has_rows).map(write).collect::<Vec<_>>().join("\n")
    };
    write(format!("{stem}.md"), texts(&markdown))?;
    write(format!("{stem}.tex"), texts(&latex))?;
    write(format!("{stem}.csv"), csv(&tables[0], true) + &csv(&tables[1], false))?;
    for (name, figure) in tables.iter().flat_map(figures) {
        write(format!("{stem}-{name}.svg"), figure.svg())?;
    }
    if std::ptr::eq(shown, dev) && wants_test {
        terminal.say("there are no test scores for this table: these are of the dev sets");
    } else if std::ptr::eq(shown, dev) && has_rows(&test) {
        let file = command.out.join(format!("{stem}.md"));
        terminal.say(&format!("test scores are in `{}` too; `--test` prints them", file.display()));
    }
    output::print(&markdown(shown))
}
