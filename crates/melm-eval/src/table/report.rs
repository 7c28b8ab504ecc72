//! The files of a table: Markdown, LaTeX, CSV and figures.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use melm::files::write_shared;

use super::{Rows, Split, Table, costs, csv, figures, latex, markdown};
use crate::{Cell, CellFilter, Error, Ledger, LedgerLine, PaperScores};

/// The ledger lines from which a table is made.
pub struct SelectedLines {
    /// The lines, one for each cell.
    pub lines: Vec<LedgerLine>,
    /// The number of older lines of the same cells, run with other data, settings or device.
    pub n_superseded: usize,
    /// The arithmetic of the devices that the lines were computed with.
    pub devices: BTreeSet<String>,
}

impl SelectedLines {
    /// Reads the ledgers of a folder and selects the lines that pass all filters. If a cell has several lines, selects
    /// the last one.
    ///
    /// Fails if no line is left, or if a filter has a value that neither a line nor one of `cells` has.
    pub fn read(dir: &Path, filters: &[CellFilter], cells: &[Cell]) -> Result<Self, Error> {
        let lines = Ledger::read(dir)?;
        if lines.is_empty() {
            return Err(Error::NoLedger { dir: dir.to_path_buf() });
        }
        for filter in filters {
            filter.check(cells.iter().chain(lines.iter().map(|line| &line.cell)))?;
        }
        let mut selected: Vec<LedgerLine> = Vec::new();
        let mut n_superseded = 0;
        for line in lines {
            if !filters.iter().all(|filter| filter.allows(&line.cell)) {
                continue;
            }
            match selected.iter_mut().find(|other| other.cell == line.cell) {
                Some(other) => {
                    *other = line;
                    n_superseded += 1;
                }
                None => selected.push(line),
            }
        }
        if selected.is_empty() {
            return Err(Error::NoLines);
        }
        let devices = selected.iter().map(|line| line.device.clone()).collect();
        Ok(Self { lines: selected, n_superseded, devices })
    }
}

/// A table that was written to files.
pub struct Report {
    /// The table as Markdown, for the split `shown`.
    pub markdown: String,
    /// The split that was asked for, or dev if there are no test scores.
    pub shown: Split,
    /// True if the Markdown file contains test scores.
    pub has_test: bool,
    /// The Markdown file, which contains both splits.
    pub file: PathBuf,
}

impl Report {
    /// Writes a table into a folder, in all formats, with its figures.
    ///
    /// `split` is the split to show; the table `cross` always shows test scores. Returns `None`, and writes nothing, if the
    /// lines have no scores for the table. Fails if a file cannot be written.
    pub fn write(
        dir: &Path,
        table: Table,
        split: Split,
        lines: &[LedgerLine],
        paper: &PaperScores,
    ) -> Result<Option<Self>, Error> {
        let stem = table.file_stem();
        let write = |name: &str, text: &str| write_shared(&dir.join(name), text.as_bytes());
        let file = dir.join(format!("{stem}.md"));
        if table.cost_method().is_some() {
            let Some(markdown) = costs(table, lines, paper) else { return Ok(None) };
            write(&format!("{stem}.md"), &markdown)?;
            return Ok(Some(Self { markdown, shown: Split::Dev, has_test: false, file }));
        }
        let tables = [Split::Dev, Split::Test].map(|split| table.rows(lines, split, paper));
        let has_rows = |table: &&Rows| !table.rows.is_empty();
        let [dev, test] = &tables;
        let wants_test = split == Split::Test || table == Table::Cross;
        let shown = if wants_test && has_rows(&test) { test } else { dev };
        if !has_rows(&shown) {
            return Ok(None);
        }
        let both = |format: &dyn Fn(&Rows) -> String| {
            tables.iter().filter(has_rows).map(format).collect::<Vec<_>>().join("\n")
        };
        write(&format!("{stem}.md"), &both(&markdown))?;
        write(&format!("{stem}.tex"), &both(&latex))?;
        write(&format!("{stem}.csv"), &csv(&tables))?;
        for (name, figure) in tables.iter().flat_map(figures) {
            write(&format!("{stem}-{name}.svg"), &figure.svg())?;
        }
        let has_test = has_rows(&test);
        Ok(Some(Self { markdown: markdown(shown), shown: shown.split, has_test, file }))
    }
}
