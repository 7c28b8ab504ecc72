//! `melm report`: makes a page from the folder of a run.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use melm_report::{Kind, Report};

use crate::args;
use crate::failure::Failure;
use crate::output;
use crate::terminal::{Terminal, count};

/// The name of the page in the folder.
const PAGE: &str = "report.html";

pub(crate) fn run(command: &args::Report, terminal: &Terminal) -> Result<(), Failure> {
    let path = match &command.out {
        Some(path) => Some(path.clone()),
        None if command.json => None,
        None => Some(command.folder.join(PAGE)),
    };
    if command.json && path.as_deref().is_some_and(output::is_stdout) {
        return Err(Failure::Usage {
            message: "`--json` and `-o -` both write to standard output".into(),
            hint: "pass a file with `-o`, or leave it out",
        });
    }
    if let Some(path) = &path {
        output::refuse_existing(path, command.force)?;
    }
    let report = Report::read(&command.folder)?;
    if let Some(path) = &path {
        write(&report, path, command.force, terminal)?;
        if command.open {
            open(path, terminal);
        }
    }
    output::print_json(command.json, command.json.then(|| report.json()).as_ref())
}

fn write(report: &Report, path: &Path, force: bool, terminal: &Terminal) -> Result<(), Failure> {
    let html = report.html();
    output::write(path, force, &html)?;
    if output::is_stdout(path) {
        return Ok(());
    }
    let shown = &report.shown;
    let what = match (shown.total, report.tables.len()) {
        (0, n) if report.kind != Kind::Augment => count(n, "table"),
        (total, _) if shown.shown < total => {
            format!("a sample of {} of {}", shown.shown, count(total, "sentence"))
        }
        (total, _) => count(total, "sentence"),
    };
    let kilobytes = html.len().div_ceil(1000);
    terminal.info(&format!("wrote `{}`: {what}, {kilobytes} kB", path.display()));
    if let Some(check) = report.gold_check.as_ref().filter(|check| check.summary.suspect > 0) {
        let n = count(check.summary.suspect, "gold sentence");
        terminal.info(&format!("{n} may have wrong tags: see the page"));
    }
    Ok(())
}

/// Opens the page with the program that the system has for HTML. If there is none, says so: the page is written.
fn open(path: &Path, terminal: &Terminal) {
    let path = std::fs::canonicalize(path).unwrap_or_else(|_| path.to_path_buf());
    let started = openers(&path).into_iter().any(|(program, words)| {
        let mut command = Command::new(program);
        command.args(words).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        command.spawn().is_ok()
    });
    if !started {
        terminal.info(&format!(
            "no program to open it was found: open `{}` in a browser",
            path.display()
        ));
    }
}

/// Programs that open a file, with their arguments.
fn openers(path: &Path) -> Vec<(&'static str, Vec<PathBuf>)> {
    let path = path.to_path_buf();
    if cfg!(target_os = "macos") {
        vec![("open", vec![path])]
    } else if cfg!(target_os = "windows") {
        vec![("explorer", vec![path])]
    } else {
        vec![("xdg-open", vec![path.clone()]), ("wslview", vec![path])]
    }
}
