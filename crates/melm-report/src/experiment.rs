//! The report on a folder of `melm trial` or `melm reproduce`: tables of scores with intervals.

use std::num::{NonZeroU16, NonZeroU64};
use std::path::Path;

use melm_eval::statistics::Mean;
use melm_eval::table::{Row, Rows, SelectedLines, Split, Table};
use melm_eval::{LedgerLine, PaperScores, System, Trial, TrialResult, TrialSystem};
use serde::Serialize;
use serde_json::Value;

use crate::augmented::text;
use crate::command::CommandLine;
use crate::numbers::{Choices, Highlights};
use crate::visible::visible;
use crate::{Error, Fact, Kind, Report};

/// A table of scores.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ScoreTable {
    /// The title.
    pub title: String,
    /// How to read the table.
    pub caption: String,
    /// The names of the columns with F1, the mean last.
    pub columns: Vec<String>,
    /// The rows.
    pub rows: Vec<ScoreRow>,
}

/// A system of a table.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ScoreRow {
    /// The number of gold sentences; `None` for a row over all sizes.
    pub size: Option<usize>,
    /// The system.
    pub system: String,
    /// The name of the settings; empty if there is only one.
    pub variant: String,
    /// F1 in percent by column. `None` if there is no score.
    pub f1: Vec<Option<Score>>,
    /// The paired difference to gold alone.
    pub to_gold: Option<Difference>,
}

/// A mean F1.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Score {
    /// The mean in percent.
    pub mean: f64,
    /// The standard deviation over draws and seeds; `None` for one tagger.
    pub sd: Option<f64>,
    /// The number of taggers.
    pub n: usize,
}

/// A mean difference in F1 with its 95 % interval.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Difference {
    /// The mean difference in percentage points.
    pub mean: f64,
    /// The lower end of the interval; `None` for a single pair.
    pub low: Option<f64>,
    /// The upper end of the interval.
    pub high: Option<f64>,
    /// The conclusion: `better`, `worse`, `no difference`, `inconclusive` or `too few pairs`.
    pub verdict: String,
}

/// Reads the folder. `command` is the content of `command.json`, or null.
pub(crate) fn read(dir: &Path, command: &Value) -> Result<Report, Error> {
    let selected = match SelectedLines::read(dir, &[], &[]) {
        Err(melm_eval::Error::NoLedger { dir }) => return Err(Error::NotARun { dir }),
        other => other?,
    };
    let is_fold = |line: &LedgerLine| line.cell.language.starts_with("fold ");
    let is_trial = command["command"] == "trial" || selected.lines.iter().all(is_fold);
    let kind = if is_trial { Kind::Trial } else { Kind::Reproduce };
    let (tables, verdict) = match kind {
        Kind::Trial => trial(&selected.lines, command)?,
        Kind::Augment | Kind::Reproduce => reproduce(&selected.lines, command),
    };
    let rebuilt = CommandLine::new(command, || {
        let words: &[&str] =
            if is_trial { &["trial", "TRAIN", "-o"] } else { &["reproduce", "mono", "-o"] };
        let words = words.iter().map(|word| (*word).to_owned());
        words.chain([dir.display().to_string()]).collect()
    });
    Ok(Report {
        kind,
        folder: visible(&dir.display().to_string()),
        melm: selected.lines[0].melm.clone(),
        key: selected.lines[0].key.clone(),
        facts: facts(&selected, command),
        verdict,
        command: rebuilt.text,
        is_recorded_command: rebuilt.is_recorded,
        notes: notes(&selected),
        funnels: Vec::new(),
        mentions: Vec::new(),
        shown: Choices::default(),
        highlights: Highlights::default(),
        gold_check: None,
        charts: Vec::new(),
        tables,
        candidates: Vec::new(),
        types: Vec::new(),
    })
}

/// What the tables leave out or mix.
fn notes(selected: &SelectedLines) -> Vec<String> {
    let mut notes = Vec::new();
    if selected.n_superseded > 0 {
        notes.push(format!(
            "{} older lines of the same cells are left out: they were run with other data, settings or device.",
            selected.n_superseded
        ));
    }
    if selected.devices.len() > 1 {
        let all: Vec<_> = selected.devices.iter().map(String::as_str).collect();
        notes.push(format!("The scores were computed on {}.", all.join(" and ")));
    }
    notes
}

fn facts(selected: &SelectedLines, command: &Value) -> Vec<Fact> {
    let lines = &selected.lines;
    let mut facts = Vec::new();
    let mut add = |name: &str, value: String| {
        if !value.is_empty() {
            facts.push(Fact { name: name.to_owned(), value: visible(&value) });
        }
    };
    let mut distinct = |name: &str, of: &dyn Fn(&LedgerLine) -> String| {
        let mut values: Vec<String> = lines.iter().map(of).collect();
        values.sort();
        values.dedup();
        add(name, values.join(", "));
    };
    distinct("Data", &|line| line.cell.language.clone());
    distinct("Methods", &|line| line.cell.method.to_string());
    distinct("Budget of each tagger", &|line| line.cell.budget.to_string());
    distinct("Models", &|line| {
        let mut models = line.models.clone().to_vec();
        models.dedup();
        models.join(", ")
    });
    distinct("Device", &|line| line.device.clone());
    distinct("Version", &|line| format!("melm {}", line.melm));
    let hours = |line: &LedgerLine| line.seconds.drafts + line.seconds.train + line.seconds.score;
    let seconds: f64 = lines.iter().map(hours).sum();
    add("Taggers", lines.len().to_string());
    add("Time of all taggers", format!("{:.1} h", seconds / 3600.0));
    add("Training set", text(&command["train"]));
    facts
}

/// Returns the table and the verdict of a trial.
fn trial(lines: &[LedgerLine], command: &Value) -> Result<(Vec<ScoreTable>, String), Error> {
    let budget = command["budget"].as_str();
    let own =
        |line: &&LedgerLine| budget.is_none_or(|budget| line.cell.budget.to_string() == budget);
    let lines: Vec<LedgerLine> = lines.iter().filter(own).cloned().collect();
    let mut folds: Vec<_> = lines.iter().map(|line| &line.cell.language).collect();
    folds.sort();
    folds.dedup();
    let systems = trial_systems(&lines, command);
    let methods: Vec<System> = systems.iter().map(|system| system.method).collect();
    let trial = Trial::new(folds.len(), NonZeroU16::MIN, NonZeroU64::MIN, &methods)?;
    let result = trial.result(&lines);
    let rows = Table::Mono.rows(&lines, Split::Test, &PaperScores::new());
    let table = ScoreTable {
        title: format!("Cross-validation with {} folds", folds.len()),
        caption: "Micro-F1 in percent on the fold that the tagger was not trained on, seeds averaged. Differences are paired by \
                  fold, with their 95 % interval (Student's t, corrected for the overlap of training sets: Nadeau and Bengio \
                  2003)."
            .to_owned(),
        columns: columns(&rows),
        rows: rows.rows.iter().map(|row| trial_row(row, &rows, &result)).collect(),
    };
    let verdict = match systems.last() {
        Some(last) => result.verdict(last),
        None => "no verdict: the ledger has only gold".to_owned(),
    };
    Ok((vec![table], sentence(&verdict)))
}

/// The systems that are compared with gold, in the order of the command. The verdict is about the last one.
fn trial_systems(lines: &[LedgerLine], command: &Value) -> Vec<TrialSystem> {
    let mut systems: Vec<TrialSystem> = Vec::new();
    for line in lines {
        let system = TrialSystem { method: line.cell.method, text: line.cell.text.clone() };
        let is_gold = system.method == System::GOLD && system.text.is_none();
        if !is_gold && !systems.contains(&system) {
            systems.push(system);
        }
    }
    let order: Vec<&str> =
        command["systems"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    systems.sort_by_key(|system| order.iter().position(|name| *name == system.to_string()));
    systems
}

fn trial_row(row: &Row, rows: &Rows, result: &TrialResult) -> ScoreRow {
    let system = TrialSystem { method: row.method, text: row.text.clone() };
    let to_gold = result.difference_to_gold(&system).map(|found| Difference {
        mean: found.mean,
        low: found.margin.map(|margin| found.mean - margin),
        high: found.margin.map(|margin| found.mean + margin),
        verdict: found.verdict.words().to_owned(),
    });
    ScoreRow { system: system.to_string(), to_gold, ..score_row(row, rows) }
}

/// Returns the tables and the verdict of an experiment.
fn reproduce(lines: &[LedgerLine], command: &Value) -> (Vec<ScoreTable>, String) {
    let named = Table::NAMES.into_iter().find(|(name, _)| command["table"] == *name);
    let wanted = match named {
        Some((_, table)) => vec![table],
        None => vec![Table::Mono, Table::Cross, Table::Multi],
    };
    let mut tables = Vec::new();
    for table in wanted {
        for split in [Split::Test, Split::Dev] {
            let rows = table.rows(lines, split, &PaperScores::new());
            tables.extend(score_tables(&rows));
        }
    }
    let rows = || tables.iter().flat_map(|table: &ScoreTable| &table.rows);
    let count = |words: &str| {
        rows().filter(|row| row.to_gold.as_ref().is_some_and(|d| d.verdict == words)).count()
    };
    let verdict = format!(
        "Compared with gold alone, {} rows are better, {} are worse, {} show no difference, and {} are inconclusive. {MEANING}",
        count("better"),
        count("worse"),
        count("no difference"),
        count("inconclusive")
    );
    (tables, verdict)
}

/// What the verdicts of a table mean.
const MEANING: &str = "An interval that contains zero is called inconclusive, or no difference if all of it is within 1 \
                       point of zero.";

/// Returns a table for each budget.
fn score_tables(rows: &Rows) -> Vec<ScoreTable> {
    let mut budgets: Vec<String> = rows.rows.iter().map(|row| row.budget.to_string()).collect();
    budgets.dedup();
    let table = |budget: String| ScoreTable {
        title: format!("{}, {} F1, {budget}", rows.table.name(), rows.split.name()),
        caption: format!(
            "Micro-F1 in percent, mean ± standard deviation over draws and seeds. Differences are paired, with their 95 % \
             interval (Student's t). {MEANING}"
        ),
        columns: columns(rows),
        rows: rows
            .rows
            .iter()
            .filter(|row| row.budget.to_string() == budget)
            .map(|row| score_row(row, rows))
            .collect(),
    };
    budgets.into_iter().map(table).collect()
}

/// The name of the column of means.
const MEAN: &str = "mean";

fn columns(rows: &Rows) -> Vec<String> {
    rows.columns.iter().cloned().chain([MEAN.to_owned()]).map(|name| visible(&name)).collect()
}

fn score_row(row: &Row, rows: &Rows) -> ScoreRow {
    let score = |mean: &Mean| Score { mean: mean.mean, sd: mean.sd, n: mean.n };
    let names = rows.columns.iter().map(String::as_str).chain([MEAN]);
    let to_gold = row.to_gold.get(MEAN).map(|mean| Difference {
        mean: mean.mean,
        low: mean.margin().map(|margin| mean.mean - margin),
        high: mean.margin().map(|margin| mean.mean + margin),
        verdict: mean.verdict().words().to_owned(),
    });
    ScoreRow {
        size: (row.size != usize::MAX).then_some(row.size),
        system: row.title(),
        variant: if rows.variants.len() > 1 { visible(&row.variant) } else { String::new() },
        f1: names.map(|name| row.f1.get(name).map(score)).collect(),
        to_gold,
    }
}

/// Starts with a capital letter and ends with a full stop.
fn sentence(text: &str) -> String {
    let mut characters = text.chars();
    let first = characters.next().map(|c| c.to_uppercase().to_string()).unwrap_or_default();
    let end = if text.ends_with('.') { "" } else { "." };
    format!("{first}{}{end}", characters.as_str())
}
