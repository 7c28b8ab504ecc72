//! Prints failures: the message, the place with an excerpt and a caret, and a hint.

use std::collections::BTreeSet;
use std::error::Error as _;

use melm_text::{Error, Problem, Problems};
use unicode_width::UnicodeWidthStr;

use crate::failure::Failure;
use crate::terminal::{Style, Terminal, one_line};

/// The number of problems that are shown with their lines. `--verbose` shows all problems that are stored.
const MAX_SHOWN: usize = 5;
/// The number of characters of a long line that are shown around the problem.
const WIDTH: usize = 90;

/// Prints a failure to standard error.
pub(crate) fn show(failure: &Failure, terminal: &Terminal) {
    terminal.print_all(describe(failure, terminal));
}

/// Returns the lines that describe a failure.
pub(crate) fn describe(failure: &Failure, terminal: &Terminal) -> Vec<String> {
    let error = terminal.style(Style::Error, "error");
    let mut lines = match failure {
        Failure::Text(Error::Data { name, problems, excerpts }) => {
            data(name, problems, excerpts, terminal)
        }
        Failure::Text(other) => {
            let cause = other.source().map(|source| format!(": {source}")).unwrap_or_default();
            vec![format!("{error}: {}", one_line(&format!("{other}{cause}")))]
        }
        Failure::Method(
            file @ (melm::Error::Read { source, .. } | melm::Error::Write { source, .. }),
        ) => vec![format!("{error}: {}", one_line(&format!("{file}: {source}")))],
        Failure::Method(melm::Error::Setting { place, message }) => {
            lines_with_place(&error, place, message)
        }
        Failure::Experiment(melm_eval::Error::Grid { name, message }) => {
            lines_with_place(&error, &format!("`{name}`"), message)
        }
        // The user stopped the command, so this is not an error.
        interrupted @ (Failure::Method(melm::Error::Interrupted) | Failure::Discarded(_)) => {
            vec![interrupted.to_string()]
        }
        Failure::Method(method) => {
            let mut lines = vec![format!("{error}: {}", one_line(&method.to_string()))];
            let mut cause = method.source();
            while let Some(source) = cause {
                lines.push(format!("  caused by: {}", one_line(&source.to_string())));
                cause = source.source();
            }
            lines
        }
        other => vec![format!("{error}: {}", one_line(&other.to_string()))],
    };
    if let Some(cure) = failure.hint() {
        lines.extend([String::new(), hint(&cure, terminal)]);
    }
    lines
}

/// Returns the lines of an error in a file of settings. Only such a message has several lines: they show where a TOML file
/// is wrong.
fn lines_with_place(error: &str, place: &str, message: &str) -> Vec<String> {
    let text = format!("{error}: {}: {message}", one_line(place));
    text.lines().map(str::to_owned).collect()
}

/// Returns lines that list the problems of a file, the first of them with excerpts.
pub(crate) fn data(
    name: &str,
    problems: &Problems,
    excerpts: &[String],
    terminal: &Terminal,
) -> Vec<String> {
    let error = terminal.style(Style::Error, "error");
    let first = problems.first();
    let n_shown = if terminal.is_verbose() { first.len() } else { first.len().min(MAX_SHOWN) };
    let mut lines = Vec::new();
    match first {
        [only] if problems.len() == 1 => {
            lines.push(format!("{error}: {}", one_line(&only.fault.to_string())));
            lines.extend(excerpt(name, only, excerpts.first().map_or("", |e| e), None));
        }
        _ => {
            let name = one_line(name);
            lines.push(format!("{error}: {} problems in `{name}`", problems.len()));
            for (problem, text) in first.iter().zip(excerpts).take(n_shown) {
                let label = one_line(&problem.fault.to_string());
                lines.extend(excerpt(&name, problem, text, Some(&label)));
            }
        }
    }
    if problems.len() > n_shown {
        lines.push(describe_rest(&first[n_shown..], problems.len() - n_shown));
    }
    lines.push(String::new());
    let mut cures: Vec<&str> = Vec::new();
    for cure in first.iter().map(|problem| problem.fault.cure()) {
        if !cures.contains(&cure) {
            lines.push(hint(cure, terminal));
            cures.push(cure);
        }
    }
    lines
}

fn hint(cure: &str, terminal: &Terminal) -> String {
    format!("{}: {cure}", terminal.style(Style::Hint, "hint"))
}

fn describe_rest(unshown: &[Problem], n: usize) -> String {
    let by_line: BTreeSet<usize> = unshown.iter().map(|problem| problem.line).collect();
    let numbers: Vec<_> = by_line.iter().take(10).map(ToString::to_string).collect();
    let more = if by_line.len() > 10 || n > unshown.len() { ", …" } else { "" };
    format!("… and {n} more, on lines {}{more}", numbers.join(", "))
}

/// Returns `--> file:line:column`, the line, and carets under the problem.
fn excerpt(name: &str, problem: &Problem, text: &str, label: Option<&str>) -> Vec<String> {
    let name = one_line(name);
    let start = text.floor_char_boundary(problem.span.start.min(text.len()));
    let end = text.ceil_char_boundary(problem.span.end.min(text.len())).max(start);
    let number = problem.line.to_string();
    let gutter = " ".repeat(number.len());
    if text.is_empty() {
        let label = label.map(|label| format!(": {label}")).unwrap_or_default();
        return vec![format!("{gutter}--> {name}:{number}{label}")];
    }
    let column = problem.column;
    let (head, shown_at, shown_from) = window(&text[..start], &text[start..]);
    let indent = " ".repeat(visible(&text[shown_at..start]).width() + head.width());
    let under = visible(&text[start..end.min(shown_from)]);
    let carets = "^".repeat(under.width().max(1));
    let tail = if shown_from < text.len() { "…" } else { "" };
    let body = visible(&text[shown_at..shown_from]);
    let label = label.map(|label| format!(" {label}")).unwrap_or_default();
    vec![
        format!("{gutter}--> {name}:{number}:{column}"),
        format!("{gutter} |"),
        format!("{number} | {head}{body}{tail}"),
        format!("{gutter} | {indent}{carets}{label}"),
    ]
}

/// Chooses the part of a long line that is shown. Returns an ellipsis if the start is cut, and the start and end of the
/// part in bytes.
fn window(before: &str, from: &str) -> (&'static str, usize, usize) {
    let half = WIDTH / 2;
    let cut_before = before.char_indices().rev().nth(half).map(|(at, _)| at);
    let end = from.char_indices().nth(half).map_or(from.len(), |(at, _)| at);
    match cut_before {
        Some(at) => ("…", at, before.len() + end),
        None => ("", 0, before.len() + end),
    }
}

/// Makes hidden characters visible: a tab becomes four spaces, and a control or zero-width character becomes a
/// replacement character. Combining marks stay, because many scripts need them.
fn visible(text: &str) -> String {
    let mut out = String::new();
    for c in text.chars() {
        match c {
            '\t' => out.push_str("    "),
            '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}' | '\u{feff}' => {
                out.push('\u{fffd}');
            }
            c if c.is_control() => out.push('\u{fffd}'),
            c => out.push(c),
        }
    }
    out
}
