//! `melm check`: counts the contents of files, and reports errors and suspicious places.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use melm_text::check::{CheckedFile, RepeatCounts, Report, SeenSentences, SplitDifference};
use melm_text::{Documents, escaped, shown};
use serde::Serialize;

use crate::args::Check;
use crate::diagnose;
use crate::failure::Failure;
use crate::input;
use crate::labelled::refuse_second_stdin;
use crate::output::Output;
use crate::progress::Progress;
use crate::terminal::{Style, Terminal, count};

#[derive(Serialize)]
struct Json {
    files: Vec<CheckedFile>,
    problems: usize,
}

pub(crate) fn run(command: &Check, terminal: &Terminal) -> Result<(), Failure> {
    refuse_second_stdin(command.files.iter().map(PathBuf::as_path))?;
    let mut seen = SeenSentences::default();
    let mut files = Vec::new();
    let mut n_problems = 0;
    let mut out = Output::create("-".as_ref(), false)?;
    for path in &command.files {
        // Check the other files even if one cannot be read.
        match check(path, command, &mut seen, terminal) {
            Ok((file, found)) => {
                let file = file.compared_with(files.first());
                if !command.json {
                    print(&mut out, &text(&file, command, terminal))?;
                    if let Some(failure) = &found {
                        diagnose::show(failure, terminal);
                    }
                }
                n_problems += file.n_problems;
                files.push(file);
            }
            Err(failure @ Failure::Usage { .. }) => return Err(failure),
            Err(failure) => {
                diagnose::show(&failure, terminal);
                n_problems += 1;
            }
        }
    }
    if command.json {
        print(&mut out, &Json { files, problems: n_problems }.to_text())?;
    }
    match n_problems {
        0 => Ok(()),
        n => Err(Failure::Reported(format!("{} in total", count(n, "problem")))),
    }
}

/// Prints a part of the report. If standard output is closed (`| head`), continues without printing, so that all
/// problems are counted.
fn print(out: &mut Output, text: &str) -> Result<(), Failure> {
    let printed = out.write_all(text.as_bytes()).and_then(|()| out.flush());
    match printed.map_err(|error| Output::failed("standard output", error)) {
        Err(failure) if !failure.is_closed_pipe() => Err(failure),
        _ => Ok(()),
    }
}

/// Returns the report on a file. If the file has problems, also returns the failure that lists them.
fn check(
    path: &Path,
    command: &Check,
    seen: &mut SeenSentences,
    terminal: &Terminal,
) -> Result<(CheckedFile, Option<Failure>), Failure> {
    let options = input::read_options(&command.input, path)?;
    let source = input::open(path, &command.input)?;
    let mut progress = Progress::for_bytes("checking", source.text().len(), terminal);
    let (report, survey) =
        Report::read(&source, &options, seen, |position| progress.set_position(position as u64))?;
    drop(progress);
    let notes = survey.structure.documents().map(Documents::notes).unwrap_or_default();
    terminal.info_all(notes);
    let found = survey.require_sound(&source, false).err();
    Ok((CheckedFile::new(report, found.as_ref()), found.map(Failure::from)))
}

impl Json {
    fn to_text(&self) -> String {
        serde_json::to_string_pretty(self).expect("plain numbers and strings") + "\n"
    }
}

fn text(file: &CheckedFile, command: &Check, terminal: &Terminal) -> String {
    let report = &file.report;
    let mut text = format!("{}\n", escaped(&report.file));
    let mut row = |name: &str, value: String| text += &format!("  {name:<11} {value}\n");
    row("format", format(report));
    row("scheme", scheme(report, command.input.scheme.is_some()));
    row("sentences", sentences(report));
    row("tokens", report.tokens.to_string());
    row("mentions", mentions(report));
    let longest: Vec<_> = report
        .longest
        .iter()
        .map(|long| {
            let place = locate(long.file.as_deref(), long.line);
            format!("{} ({place})", count(long.tokens, "token"))
        })
        .collect();
    row("longest", longest.join(", "));
    let repeats = &report.repeats;
    row("duplicates", repeated(&repeats.duplicates, "an earlier sentence of this file"));
    text += &places(&repeats.duplicates);
    if repeats.leaks.n > 0 {
        let leaks = terminal.style_stdout(Style::Warning, "leaks");
        let rest = repeated(&repeats.leaks, "a sentence of an earlier file");
        text += &format!("  {leaks}{:6} {rest}\n{}", "", places(&repeats.leaks));
    }
    if let Some(difference) = &file.difference {
        text += &differences(difference, report, terminal);
    }
    for (kind, found) in report.suspicions.iter() {
        let warning = terminal.style_stdout(Style::Warning, "suspicious");
        text += &format!("  {warning}  {} × {}\n", found.n, kind.text());
        for one in &found.first {
            let place = locate(one.file.as_deref(), one.line);
            text += &format!("{:14}{place}: {}\n", "", one.what);
        }
        if found.n > found.first.len() {
            text += &format!("{:14}… and {} more\n", "", found.n - found.first.len());
        }
    }
    text
}

/// Names a line, and its file if the input has several files.
fn locate(file: Option<&str>, line: usize) -> String {
    let file = file.map(|file| format!("{}, ", escaped(file))).unwrap_or_default();
    format!("{file}line {line}")
}

/// Says how a file differs from the first one.
fn differences(difference: &SplitDifference, report: &Report, terminal: &Terminal) -> String {
    let warning = terminal.style_stdout(Style::Warning, "differs");
    let first = escaped(&difference.first_file);
    let mut text = String::new();
    if let Some(scheme) = difference.first_scheme {
        let (own, scheme) = (report.scheme.to_uppercase(), scheme.to_uppercase());
        text += &format!("  {warning}{:4} the scheme is {own}, that of {first} is {scheme}\n", "");
    }
    if !difference.new_types.is_empty() {
        let types = list_types(&difference.new_types);
        text += &format!("  {warning}{:4} entity types that {first} does not have: {types}\n", "");
    }
    text
}

/// The number of entity types that are listed.
const MAX_TYPES: usize = 30;

/// Returns the number of mentions, and of mentions of each entity type.
fn mentions(report: &Report) -> String {
    let types = list_types(&report.mentions);
    let list = if types.is_empty() { String::new() } else { format!(" ({types})") };
    format!("{}{list}", report.n_mentions())
}

/// Lists the first entity types with their numbers of mentions.
fn list_types(mentions: &BTreeMap<String, usize>) -> String {
    let n_types = mentions.len();
    let types = mentions.iter().take(MAX_TYPES);
    let mut types: Vec<_> = types.map(|(name, n)| format!("{} {n}", shown(name))).collect();
    if n_types > MAX_TYPES {
        types.push(format!("{} more", count(n_types - MAX_TYPES, "type")));
    }
    types.join(", ")
}

fn sentences(report: &Report) -> String {
    let documents = match report.documents {
        0 => String::new(),
        n => format!(", {}", count(n, "document")),
    };
    let n_without = report.sentences_without_mention;
    let incomplete = match report.incomplete_sentences {
        0 => String::new(),
        n => format!("; {n} more with rows that cannot be read, not counted"),
    };
    format!("{}, {n_without} of them without a mention{documents}{incomplete}", report.sentences)
}

fn format(report: &Report) -> String {
    let Some(columns) = &report.columns else {
        return match report.format {
            "jsonl" => "JSON lines".into(),
            other => other.into(),
        };
    };
    let mut text =
        format!("CoNLL, {} columns, token in {}, tag in {}", columns.n, columns.token, columns.tag);
    if let Some(other) = columns.also_tags.first() {
        text += &format!(" (column {other} looks like tags too: `--tag-column {other}`)");
    }
    text
}

/// Names the scheme. `is_given` is true if the command line sets it.
fn scheme(report: &Report, is_given: bool) -> String {
    let upper = |names: &[&str]| names.join(", ").to_uppercase();
    match report.also_valid_as.as_slice() {
        [] if report.scheme_violations > 0 && !is_given => {
            let n = count(report.scheme_violations, "tag");
            format!("{} (no scheme fits all tags; {n} not allowed)", upper(&[report.scheme]))
        }
        [] => upper(&[report.scheme]),
        also => format!("{} (also valid as {})", upper(&[report.scheme]), upper(also)),
    }
}

fn repeated(repeated: &RepeatCounts, what: &str) -> String {
    match (repeated.n, repeated.n_other_mentions) {
        (0, _) => "none".into(),
        (n, 0) => format!("{n} × the same tokens as {what}"),
        (n, other) => format!("{n} × the same tokens as {what}, {other} with other mentions"),
    }
}

/// The number of repeated sentences that are shown with their lines.
const MAX_PLACES: usize = 3;

fn places(repeated: &RepeatCounts) -> String {
    let mut text = String::new();
    for repeat in repeated.first.iter().take(MAX_PLACES) {
        let other = if repeat.same_mentions { "" } else { ", with other mentions" };
        let first = &repeat.first;
        text += &format!(
            "{:14}{}: same as {}:{}{other}\n",
            "",
            locate(repeat.file.as_deref(), repeat.line),
            escaped(&first.file),
            first.line
        );
    }
    if repeated.n > MAX_PLACES {
        text += &format!("{:14}… and {} more\n", "", repeated.n - MAX_PLACES);
    }
    text
}
