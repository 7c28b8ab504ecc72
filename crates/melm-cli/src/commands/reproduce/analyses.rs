//! Analyses that are not tables of scores: predictions of models (Table 3) and the number of valid entities (Figure 4).

use melm::files::write_shared;
use melm::stage::{Control, Event};
use melm_eval::{
    Cell, CellFilter, EntityLedger, EntityLine, EntityTable, Grid, ORACLE_BUDGET,
    entity_ledger_name, shard_cells, without_budgets,
};

use super::{open_grid, read_data};
use crate::args::Reproduce;
use crate::commands::reproduce::Experiment;
use crate::failure::Failure;
use crate::interrupt::{self, DeferInterrupt};
use crate::machine;
use crate::observer::ProgressObserver;
use crate::output::{self, Output};
use crate::terminal::{Terminal, count};

/// Returns a callback that passes the events of cells to one observer.
fn event_handler(
    observer: &mut ProgressObserver,
) -> impl FnMut(&Cell, &'static str, Event<'_>) -> Control {
    |_: &Cell, stage: &'static str, event: Event<'_>| {
        let control = observer.on_event(stage, event);
        if interrupt::is_requested() { Control::Stop } else { control }
    }
}

fn print_cells(cells: &[Cell]) -> Result<(), Failure> {
    output::print_escaped(&cells.iter().map(|cell| format!("{cell}\n")).collect::<String>())
}

fn create_folder(command: &Reproduce) -> Result<(), Failure> {
    std::fs::create_dir_all(&command.out)
        .map_err(|source| Output::failed(&command.out.display().to_string(), source))
}

/// Opens the experiment that an analysis uses.
fn open<'a>(
    command: &'a Reproduce,
    grid: Grid,
    cells: &[Cell],
    terminal: &Terminal,
) -> Result<Experiment<'a>, Failure> {
    let languages = read_data(command, &grid, cells, terminal)?;
    Experiment::open(&command.comparison, grid, languages, terminal)
}

pub(super) fn predictions(command: &Reproduce, terminal: &Terminal) -> Result<(), Failure> {
    let grid = open_grid(command)?;
    let mut cells = CellFilter::select(&command.only, grid.cells())?;
    // One cell for each training set of the first language.
    let language = cells[0].language.clone();
    cells.retain(|cell| cell.language == language);
    cells.dedup_by_key(|cell| (cell.size, cell.draw, cell.seed));
    if command.dry_run {
        return print_cells(&cells);
    }
    let experiment = open(command, grid, &cells, terminal)?;
    let n_sets = count(cells.len(), "training set");
    terminal.info(&format!("fine-tuning on {n_sets} of {language}, and training an oracle"));
    create_folder(command)?;
    let _deferred = DeferInterrupt::new();
    let (device, _) = machine::device(&command.comparison.device_options)?;
    let mut observer = ProgressObserver::new(u64::MAX, terminal);
    let runner = &experiment.runner;
    let table = runner.predictions(&cells, &device, &mut event_handler(&mut observer))?;
    drop(observer);
    let text = table.markdown();
    write_shared(&command.out.join("table-predictions.md"), text.as_bytes())?;
    output::print_escaped(&text)
}

pub(super) fn entities(command: &Reproduce, terminal: &Terminal) -> Result<(), Failure> {
    if command.table_only {
        return write_entities(command, &EntityLedger::read(&command.out, &command.only)?);
    }
    let grid = open_grid(command)?;
    let cells = without_budgets(&CellFilter::select(&command.only, grid.cells())?);
    let own = command.shard.map_or_else(|| cells.clone(), |shard| shard_cells(&cells, shard));
    if command.dry_run {
        return print_cells(&own);
    }
    let experiment = open(command, grid, &cells, terminal)?;
    terminal.info(&experiment.describe(&own));
    terminal.info(&format!(
        "training a tagger on all gold of each language for {ORACLE_BUDGET}, to decide which entities are valid"
    ));
    let mut ledger = EntityLedger::open(&command.out, &entity_ledger_name(command.shard))?;
    let _deferred = DeferInterrupt::new();
    let (device, _) = machine::device(&command.comparison.device_options)?;
    let mut observer = ProgressObserver::new(u64::MAX, terminal);
    let runner = &experiment.runner;
    runner.count_entities(&own, &mut ledger, &device, &mut event_handler(&mut observer))?;
    drop(observer);
    drop(ledger);
    // Read the ledgers again, so that the table contains the cells that other shards have finished in the meantime.
    let is_current =
        |line: &EntityLine| cells.contains(&line.cell) && line.key == runner.entity_key(&line.cell);
    let mut lines = EntityLedger::read(&command.out, &[])?;
    lines.retain(is_current);
    write_entities(command, &lines)
}

/// Writes the table and the figure of counted entities, and prints the table.
fn write_entities(command: &Reproduce, lines: &[EntityLine]) -> Result<(), Failure> {
    let table = EntityTable::new(lines);
    let text = table.markdown();
    write_shared(&command.out.join("table-entities.md"), text.as_bytes())?;
    write_shared(&command.out.join("table-entities.svg"), table.figure().svg().as_bytes())?;
    output::print_escaped(&text)
}
