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
        if !self.is_quiet() {
            self.print_all(lines);
        }
    }

    /// Prints warnings unless `--quiet` is given.
    pub(crate) fn warn_all(&self, warnings: impl IntoIterator<Item = String>) {
        self.info_all(warnings.into_iter().map(|warning| self.warning(&warning)));
    }

    /// Prints a warning unless `--quiet` is given.
    pub(crate) fn warn(&self, warning: &str) {
        self.info(&self.warning(warning));
    }

    /// Returns the line of a warning.
    pub(crate) fn warning(&self, warning: &str) -> String {
        format!("{}: {warning}", self.style(Style::Warning, "warning"))
    }

    /// Prints the lines of a message, also with `--quiet`. If there are too many, says how many are left out.
    #[expect(clippy::unused_self, reason = "all messages go through the terminal")]
    pub(crate) fn print_all(&self, lines: impl IntoIterator<Item = String>) {
        for line in bounded(lines) {
            let _ = writeln!(io::stderr(), "{line}");
        }
    }

    /// Prints one line, also with `--quiet`. Line feeds in it are escaped, because only a file can contain them. A closed
    /// standard error does not stop the command.
    #[expect(clippy::unused_self, reason = "all messages go through the terminal")]
    pub(crate) fn print(&self, line: &str) {
        let _ = writeln!(io::stderr(), "{}", printable(line));
    }
}

/// The number of characters of a line that are printed. A longer line has the text of a file.
const LONGEST_LINE: usize = 4_000;
/// The number of these characters that are from the end of the line. A cure is often there.
const LINE_END: usize = 1_000;
/// The number of lines of a message that are printed. `--verbose` shows the 200 problems of a file with four lines each.
const MAX_LINES: usize = 1_000;
/// The number of bytes of a message that are printed.
const MAX_BYTES: usize = 256 << 10;

/// The ends of the sequences that [`Terminal::style`] writes after the escape character.
const STYLES: [&str; 4] = ["[1;31m", "[1;33m", "[1;36m", "[0m"];

/// Returns the lines of a message that are printed: all of them, or the first ones and the number of the others.
pub(crate) fn bounded(lines: impl IntoIterator<Item = String>) -> Vec<String> {
    let mut printed = Vec::new();
    let (mut n_bytes, mut n_more) = (0, 0);
    for line in lines {
        let line = printable(&line).into_owned();
        n_bytes += line.len();
        if printed.len() < MAX_LINES && n_bytes <= MAX_BYTES {
            printed.push(line);
        } else {
            n_more += 1;
        }
    }
    if n_more > 0 {
        printed.push(format!("… ({} not shown)", count(n_more, "more line")));
    }
    printed
}

/// Returns a text as one line: line feeds are escaped.
pub(crate) fn one_line(text: &str) -> String {
    text.replace('\n', "\\n")
}

/// Replaces characters that would control the terminal or change the order of a line, escapes line feeds, and cuts the
/// middle out of a long line. Names and texts of files are part of many messages. Our own colours stay.
fn printable(line: &str) -> Cow<'_, str> {
    let is_odd = |c: char| c.is_control() || is_bidirectional_control(c);
    if line.len() <= LONGEST_LINE && !line.contains(is_odd) {
        return Cow::Borrowed(line);
    }
    let mut out = String::new();
    let n_more = line.chars().count().saturating_sub(LONGEST_LINE);
    let cut = LONGEST_LINE - LINE_END..LONGEST_LINE - LINE_END + n_more;
    for (n, (at, c)) in line.char_indices().enumerate() {
        if cut.contains(&n) {
            if n == cut.start {
                out += &format!("… ({n_more} more characters) …");
            }
            continue;
        }
        let is_style = || STYLES.iter().any(|style| line[at + 1..].starts_with(style));
        match c {
            '\t' => out.push(c),
            '\n' => out.push_str("\\n"),
            '\u{1b}' if is_style() => out.push(c),
            c if is_odd(c) => out.push('\u{fffd}'),
            c => out.push(c),
        }
    }
    Cow::Owned(out)
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
        let ours = "\u{1b}[1;31merror\u{1b}[0m: Zürich";
        assert_eq!(printable(ours), ours);
        assert_eq!(printable("a\nerror: b"), r"a\nerror: b");
        let long = printable(&"é".repeat(10_000)).into_owned();
        let [start, end] = [3_000, 1_000].map(|n| "é".repeat(n));
        assert_eq!(long, format!("{start}… (6000 more characters) …{end}"));
        let most = "é".repeat(4_000);
        assert_eq!(printable(&most), most);
    }

    #[test]
    fn the_lines_and_bytes_of_a_message_are_bounded() {
        let bounded = |n: usize, line: &str| bounded(vec![line.to_owned(); n]);
        assert_eq!(bounded(MAX_LINES, "a").len(), MAX_LINES);
        let cut = bounded(MAX_LINES + 9, "a");
        assert_eq!((cut.len(), &*cut[MAX_LINES]), (MAX_LINES + 1, "… (9 more lines not shown)"));
        let cut = bounded(100, &"é".repeat(4_000));
        assert_eq!((cut.len(), &*cut[32]), (33, "… (68 more lines not shown)"));
    }
}
