//! Messages for the user on standard error, coloured only on a terminal.

use std::borrow::Cow;
use std::io::{self, IsTerminal, Write};

pub(crate) use melm_text::count;

/// Prints messages to standard error.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Terminal {
    verbosity: Verbosity,
    is_interactive: bool,
    has_colours: bool,
}

/// How many messages are printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verbosity {
    Quiet,
    Normal,
    Verbose,
}

/// The colour of a word, named by its purpose.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Style {
    Error,
    Warning,
    Hint,
}

impl Terminal {
    pub(crate) fn new(verbosity: Verbosity) -> Self {
        let is_interactive = io::stderr().is_terminal();
        let has_colours =
            is_interactive && std::env::var_os("NO_COLOR").is_none_or(|v| v.is_empty());
        Self { verbosity, is_interactive, has_colours }
    }

    /// A terminal without colours, for messages that are not printed.
    pub(crate) fn plain() -> Self {
        Self { verbosity: Verbosity::Normal, is_interactive: false, has_colours: false }
    }

    pub(crate) fn is_quiet(&self) -> bool {
        self.verbosity == Verbosity::Quiet
    }

    pub(crate) fn is_verbose(&self) -> bool {
        self.verbosity == Verbosity::Verbose
    }

    pub(crate) fn is_interactive(&self) -> bool {
        self.is_interactive
    }

    /// Colours `text` for standard error, if standard error shows colours.
    pub(crate) fn style(&self, style: Style, text: &str) -> String {
        if !self.has_colours {
            return text.to_owned();
        }
        let code = match style {
            Style::Error => "1;31",
            Style::Warning => "1;33",
            Style::Hint => "1;36",
        };
        format!("\u{1b}[{code}m{text}\u{1b}[0m")
    }

    /// Colours `text` for standard output, if standard output shows colours.
    pub(crate) fn style_stdout(&self, style: Style, text: &str) -> String {
        if io::stdout().is_terminal() { self.style(style, text) } else { text.to_owned() }
    }

    /// Prints a line unless `--quiet` is given.
    pub(crate) fn info(&self, line: &str) {
        if !self.is_quiet() {
            self.print(line);
        }
    }

    /// Prints lines unless `--quiet` is given.
    pub(crate) fn info_all(&self, lines: impl IntoIterator<Item = String>) {
        for line in lines {
            self.info(&line);
        }
    }

    /// Prints warnings unless `--quiet` is given.
    pub(crate) fn warn_all(&self, warnings: impl IntoIterator<Item = String>) {
        for warning in warnings {
            self.warn(&warning);
        }
    }

    /// Prints a warning unless `--quiet` is given.
    pub(crate) fn warn(&self, warning: &str) {
        self.info(&self.warning(warning));
    }

    /// Returns the line of a warning.
    pub(crate) fn warning(&self, warning: &str) -> String {
        format!("{}: {warning}", self.style(Style::Warning, "warning"))
    }

    /// Prints a line, also with `--quiet`. A closed standard error does not stop the command.
    #[expect(clippy::unused_self, reason = "all messages go through the terminal")]
    pub(crate) fn print(&self, line: &str) {
        let _ = writeln!(io::stderr(), "{}", printable(line));
    }
}

/// The number of characters of a line that are printed. A longer line has the text of a file.
const LONGEST_LINE: usize = 4_000;

/// The ends of the sequences that [`Terminal::style`] writes after the escape character.
const STYLES: [&str; 4] = ["[1;31m", "[1;33m", "[1;36m", "[0m"];

/// Replaces characters that would control the terminal or change the order of a line, and cuts long lines. Names and texts
/// of files are part of many messages. Our own colours stay.
fn printable(text: &str) -> Cow<'_, str> {
    let is_odd = |c: char| c != '\n' && (c.is_control() || is_bidirectional_control(c));
    let is_long = text.len() > LONGEST_LINE && text.lines().any(|line| line.len() > LONGEST_LINE);
    if !is_long && !text.contains(is_odd) {
        return Cow::Borrowed(text);
    }
    let print_line = |line: &str| {
        let mut out = String::new();
        for (n, (at, c)) in line.char_indices().enumerate() {
            if n == LONGEST_LINE {
                let n_more = line[at..].chars().count();
                out += &format!("… ({n_more} more characters)");
                break;
            }
            let is_style = || STYLES.iter().any(|style| line[at + 1..].starts_with(style));
            match c {
                '\t' => out.push(c),
                '\u{1b}' if is_style() => out.push(c),
                c if is_odd(c) => out.push('\u{fffd}'),
                c => out.push(c),
            }
        }
        out
    };
    let lines: Vec<_> = text.split('\n').map(print_line).collect();
    Cow::Owned(lines.join("\n"))
}

/// Returns true for characters that change the direction of the text after them.
fn is_bidirectional_control(c: char) -> bool {
    matches!(
        c,
        '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}'
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_of_files_cannot_control_the_terminal() {
        let hostile = "a\u{1b}[2Jb\u{7}\u{202e}c\td";
        assert_eq!(printable(hostile), "a\u{fffd}[2Jb\u{fffd}\u{fffd}c\td");
        let ours = "\u{1b}[1;31merror\u{1b}[0m: Zürich\nhint";
        assert_eq!(printable(ours), ours);
        let long = printable(&"é".repeat(10_000)).into_owned();
        assert_eq!(long, format!("{}… (6000 more characters)", "é".repeat(4_000)));
    }
}
