//! `melm reproduce`: the paper's comparison, as a grid of taggers and a table.

mod analyses;
mod grids;
mod workshop;

use std::collections::BTreeSet;
use std::sync::Mutex;

use melm::augment::Method;
use melm::experiment::table::{Rows, Split, Table, costs, csv, figures, latex, markdown};
use melm::experiment::{Cell, Ledger, Line, Paper, Tally};
use melm::files::{sha256, write_shared};

use crate::args::{Reproduce, Subject};
use crate::failure::Failure;
use crate::output::{self, Output};
use crate::terminal::{Terminal, count};

pub(crate) use workshop::Workshop;

pub(crate) fn run(command: &Reproduce, terminal: &Terminal) -> Result<(), Failure> {
    match command.subject {
        Subject::Table(table) => make_table(command, table, terminal),
        Subject::Predictions => analyses::predictions(command, terminal),
        Subject::Entities => analyses::entities(command, terminal),
    }
}

fn make_table(command: &Reproduce, table: Table, terminal: &Terminal) -> Result<(), Failure> {
    let (name, grid) = grids::open(command)?;
    let cells = grids::cells(command, &grid)?;
    if command.table_only {
        let ledger = Ledger::open(&command.out, "ledger.jsonl")?;
        let lines = chosen(command, ledger.lines(), terminal);
        return finish((command, table), &lines, &grid.paper);
    }
    let data = grids::data(command, &name, &grid, &cells, terminal)?;
    let workshop = Workshop::new((&command.comparing, &name), &grid, data, terminal)?;
    let taggers = command.keep_taggers.then(|| command.out.join("taggers"));
    let bench = workshop.bench(taggers.as_deref());
    let needs_vectors = |cell: &Cell| cell.method.drafts().is_some_and(Method::has_vectors);
    if let Some(cell) = cells.iter().find(|cell| bench.vectors.is_none() && needs_vectors(cell)) {
        let language = cell.languages().next().unwrap_or_default().to_owned();
        return Err(melm::Error::NoVectorsOf { language }.into());
    }
    terminal.say(&workshop.described(&cells));
    let (part, file) = match command.shard {
        Some(shard) => {
            (shard.part(&cells), format!("ledger-{}-of-{}.jsonl", shard.number, shard.of))
        }
        None => (cells.clone(), "ledger.jsonl".to_owned()),
    };
    if command.dry_run {
        for cell in &part {
            terminal.say(&cell.to_string());
        }
        return Ok(());
    }
    let ledger = Mutex::new(Ledger::open(&command.out, &file)?);
    write_plans(command, &part, &|cell| bench.plan_of(cell))?;
    let tally = workshop.run(&bench, &part, &ledger, terminal)?;
    say_tally(tally, terminal);
    drop(ledger);
    // Read again: what other shards have done meanwhile belongs to the table too.
    let ledger = Ledger::open(&command.out, &file)?;
    let is_current = |line: &&Line| cells.contains(&line.cell) && line.key == bench.key(&line.cell);
    let lines: Vec<_> = ledger.lines().iter().filter(is_current).cloned().collect();
    finish((command, table), &lines, &grid.paper)
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
fn chosen(command: &Reproduce, lines: &[Line], terminal: &Terminal) -> Vec<Line> {
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
    chosen
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

/// Writes the tables and figures, and prints the one that counts: of the test sets if they were scored.
fn finish(
    (command, table): (&Reproduce, Table),
    lines: &[Line],
    paper: &Paper,
) -> Result<(), Failure> {
    let stem = match table {
        Table::Mono => "table".to_owned(),
        other => format!("table-{}", other.name()),
    };
    let write = |name: String, text: String| write_shared(&command.out.join(name), text.as_bytes());
    if table == Table::Costs {
        let text = costs(lines, paper);
        write(format!("{stem}.md"), text.clone())?;
        return output::print(&text);
    }
    let tables = [Split::Dev, Split::Test].map(|split| table.rows(lines, split, paper));
    let has_rows = |table: &&Rows| !table.rows.is_empty();
    let texts = |write: &dyn Fn(&Rows) -> String| {
        tables.iter().filter(has_rows).map(write).collect::<Vec<_>>().join("\n")
    };
    write(format!("{stem}.md"), texts(&markdown))?;
    write(format!("{stem}.tex"), texts(&latex))?;
    write(format!("{stem}.csv"), csv(&tables[0], true) + &csv(&tables[1], false))?;
    for (name, figure) in tables.iter().flat_map(figures) {
        write(format!("{stem}-{name}.svg"), figure.svg())?;
    }
    let last = tables.iter().rfind(has_rows).unwrap_or(&tables[0]);
    output::print(&markdown(last))
}
