//! `melm reproduce`: runs the paper's comparison as a grid of taggers, and prints its tables.

mod analyses;
mod setup;

use melm::files::refuse_links;
use melm_eval::table::{Report, SelectedLines, Split, Table};
use melm_eval::{
    Cell, CellFilter, Grid, Languages, Ledger, LedgerLine, PaperScores, RunSummary, ledger_name,
    shard_cells,
};
use melm_nn::files::{MAX_CONFIG_BYTES, read_text_or_pipe};
use serde_json::Map;

use crate::args::{Reproduce, ReproduceTarget};
use crate::command_line::CommandLine;
use crate::failure::Failure;
use crate::labelled;
use crate::output;
use crate::terminal::{Terminal, count};

pub(crate) use setup::Experiment;

pub(crate) fn run(
    command: &Reproduce,
    command_line: &CommandLine,
    terminal: &Terminal,
) -> Result<(), Failure> {
    output::require_stdout()?;
    match command.target {
        ReproduceTarget::Table(table) => return make_table(command, table, command_line, terminal),
        ReproduceTarget::Predictions if command.table_only || command.shard.is_some() => {
            return Err(Failure::Usage {
                message: "predictions does not support `--table-only` and `--shard`".into(),
                hint: "leave these options out",
            });
        }
        ReproduceTarget::Predictions | ReproduceTarget::Entities
            if command.keep_taggers || command.test =>
        {
            return Err(Failure::Usage {
                message: "predictions and entities do not support `--keep-taggers` and `--test`"
                    .into(),
                hint: "leave these options out",
            });
        }
        ReproduceTarget::Predictions => analyses::predictions(command, terminal),
        ReproduceTarget::Entities => analyses::entities(command, terminal),
    }
    .map_err(|failure| failure.without_saved_state(""))
}

fn make_table(
    command: &Reproduce,
    table: Table,
    command_line: &CommandLine,
    terminal: &Terminal,
) -> Result<(), Failure> {
    let grid = open_grid(command)?;
    if command.table_only {
        let lines = select_lines(command, &grid, terminal)?;
        return write_table(command, table, &lines, &grid.paper, terminal);
    }
    let cells = CellFilter::select(&command.only, grid.cells())?;
    table.check(&grid, &cells, command.test || command.dry_run)?;
    let languages = read_data(command, &grid, &cells, terminal)?;
    let mut experiment = Experiment::open(&command.comparison, grid, languages, terminal)?;
    if command.keep_taggers {
        let folder = command.out.join("taggers");
        refuse_links(&folder)?;
        experiment.runner = experiment.runner.with_tagger_folder(folder);
    }
    let runner = &experiment.runner;
    runner.check_vectors(&cells)?;
    let own = command.shard.map_or_else(|| cells.clone(), |shard| shard_cells(&cells, shard));
    terminal.info(&experiment.describe(&own));
    if command.dry_run {
        let known = Ledger::read(&command.out)?;
        let state =
            |cell: &Cell| if runner.is_known(cell, &known) { " (in the ledger)" } else { "" };
        let lines = own.iter().map(|cell| format!("{cell}{}\n", state(cell)));
        return output::print_escaped(&lines.collect::<String>());
    }
    let mut ledger = Ledger::open(&command.out, &ledger_name(command.shard))?;
    let record = Map::from_iter([("table".to_owned(), table.name().into())]);
    command_line.write(&command.out, "reproduce", record)?;
    runner.write_plans(&own, &command.out.join("plans"))?;
    let summary = experiment.run(&own, &mut ledger, terminal)?;
    drop(ledger);
    print_summary(summary, terminal);
    // Read the ledgers again, so that the table contains the cells that other shards have finished in the meantime.
    let lines = runner.current_lines(Ledger::read(&command.out)?, &cells);
    write_table(command, table, &lines, &runner.grid().paper, terminal)
}

/// Returns the grid that the options name.
fn open_grid(command: &Reproduce) -> Result<Grid, Failure> {
    let has_smoke = !matches!(
        command.target,
        ReproduceTarget::Table(
            Table::Cross
                | Table::Multi
                | Table::AddEntity
                | Table::Masking
                | Table::Rounds
                | Table::CostsMulti
        )
    );
    if command.smoke && !has_smoke {
        return Err(Failure::Usage {
            message: "`--smoke` supports only mono, costs, predictions and entities".into(),
            hint: "write a small grid and pass it with `--config` (see docs/guides/experiments.md)",
        });
    }
    let mut grid = match &command.config {
        Some(path) => {
            let text = read_text_or_pipe(path, MAX_CONFIG_BYTES)
                .map_err(|source| melm::Error::Read { path: path.clone(), source })?;
            Grid::parse(&path.display().to_string(), &text)?
        }
        None if command.smoke => Grid::smoke(),
        None => match command.target {
            ReproduceTarget::Table(table) => Grid::built_in(table),
            ReproduceTarget::Predictions => Grid::predictions(),
            ReproduceTarget::Entities => Grid::entities(),
        },
    };
    if !command.seed.is_empty() {
        grid.set_seeds(&command.seed);
    }
    Ok(grid)
}

/// Reads the files of the cells. Opens test files only with `--test`.
fn read_data(
    command: &Reproduce,
    grid: &Grid,
    cells: &[Cell],
    terminal: &Terminal,
) -> Result<Languages, Failure> {
    let mut read = |path: &std::path::Path| labelled::read_file(path, &command.input, terminal);
    let data = grid.read_data(cells, command.data.as_deref(), command.test, &mut read);
    let data = data.map_err(|failure| match failure {
        Failure::Experiment(melm_eval::Error::NoDataFile { path })
            if command.smoke && command.data.is_none() =>
        {
            Failure::Impossible {
                message: format!("the grid needs `{}`, which does not exist", path.display()),
                hint: "run the command in the repository of melm, or pass a copy of examples/politics with `--data DIR`".into(),
            }
        }
        other => other,
    })?;
    for file in &data.whole_files {
        terminal.info(&format!(
            "`{}` has {}, and each of the {} draws contains all of them: the draws are equal, and their intervals mean nothing",
            file.path.display(),
            count(file.n_sentences, "sentence"),
            file.n_draws
        ));
    }
    Ok(data.languages)
}

fn print_summary(summary: RunSummary, terminal: &Terminal) {
    let RunSummary { n_run, n_known, n_shared, n_diverged } = summary;
    let mut parts = vec![format!("{} run", count(n_run, "cell"))];
    parts.extend((n_known > 0).then(|| format!("{n_known} already in the ledger")));
    parts.extend((n_shared > 0).then(|| {
        format!(
            "{n_shared} the same as another cell, because they differ in no setting that they use"
        )
    }));
    parts.extend((n_diverged > 0).then(|| format!("{n_diverged} diverged")));
    terminal.info(&parts.join(", "));
}

/// Returns the lines of the ledger that `--only` selects.
fn select_lines(
    command: &Reproduce,
    grid: &Grid,
    terminal: &Terminal,
) -> Result<Vec<LedgerLine>, Failure> {
    let selected = SelectedLines::read(&command.out, &command.only, &grid.cells())?;
    if selected.devices.len() > 1 {
        let all = selected.devices.into_iter().collect::<Vec<_>>().join(" and ");
        terminal.info(&format!("the table mixes cells that were computed on {all}"));
    }
    if selected.n_superseded > 0 {
        let n = count(selected.n_superseded, "older line");
        terminal
            .info(&format!("ignoring {n} of the same cells, with other data, settings or device"));
    }
    Ok(selected.lines)
}

/// Writes the table and its figures, and prints the table.
fn write_table(
    command: &Reproduce,
    table: Table,
    lines: &[LedgerLine],
    paper: &PaperScores,
    terminal: &Terminal,
) -> Result<(), Failure> {
    let split = if command.test { Split::Test } else { Split::Dev };
    let Some(report) = Report::write(&command.out, table, split, lines, paper)? else {
        let message = format!(
            "the ledger of `{}` has no scores for the table `{}`",
            command.out.display(),
            table.name()
        );
        if command.table_only {
            let hint = "run the grid without `--table-only`; with `--test` for test scores".into();
            return Err(Failure::Impossible { message, hint });
        }
        // The table is empty if it needs cells of other shards.
        terminal.info(&format!("no table yet: {message}"));
        return Ok(());
    };
    let wants_test = command.test || table == Table::Cross;
    if report.shown == Split::Dev && wants_test && !table.has_only_dev_scores() {
        terminal
            .info("the ledger has no test scores for this table; showing scores of the dev sets");
    } else if report.shown == Split::Dev && report.has_test {
        let file = report.file.display();
        terminal.info(&format!("`{file}` also contains test scores; pass `--test` to print them"));
    }
    output::print_escaped(&report.markdown)
}
