//! Messages for the user on standard error, coloured only on a terminal.

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
        let _ = writeln!(io::stderr(), "{line}");
    }
}
