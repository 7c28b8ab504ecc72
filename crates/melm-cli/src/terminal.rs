//! What goes to the person: standard error, coloured only on a terminal.

use std::io::{self, IsTerminal, Write};

/// How to speak.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Terminal {
    loudness: Loudness,
    interactive: bool,
    colour: bool,
}

/// How much to say.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Loudness {
    Quiet,
    Usual,
    Verbose,
}

/// A colour, by what it means.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Paint {
    Error,
    Warning,
    Hint,
}

impl Terminal {
    pub(crate) fn new(loudness: Loudness) -> Self {
        let interactive = io::stderr().is_terminal();
        let colour = interactive && std::env::var_os("NO_COLOR").is_none_or(|v| v.is_empty());
        Self { loudness, interactive, colour }
    }

    pub(crate) fn is_quiet(&self) -> bool {
        self.loudness == Loudness::Quiet
    }

    pub(crate) fn is_verbose(&self) -> bool {
        self.loudness == Loudness::Verbose
    }

    pub(crate) fn is_terminal(&self) -> bool {
        self.interactive
    }

    /// `text` in a colour, if there are colours.
    pub(crate) fn paint(&self, paint: Paint, text: &str) -> String {
        if !self.colour {
            return text.to_owned();
        }
        let code = match paint {
            Paint::Error => "1;31",
            Paint::Warning => "1;33",
            Paint::Hint => "1;36",
        };
        format!("\u{1b}[{code}m{text}\u{1b}[0m")
    }

    /// `text` in a colour, if standard output shows colours.
    pub(crate) fn paint_out(&self, paint: Paint, text: &str) -> String {
        if io::stdout().is_terminal() { self.paint(paint, text) } else { text.to_owned() }
    }

    /// Says a line, unless asked to be quiet.
    pub(crate) fn say(&self, line: &str) {
        if !self.is_quiet() {
            self.line(line);
        }
    }

    /// Says a line in any case. A standard error that nobody reads is no reason to stop.
    #[expect(clippy::unused_self, reason = "all that is said goes through the terminal")]
    pub(crate) fn line(&self, line: &str) {
        let _ = writeln!(io::stderr(), "{line}");
    }
}

/// A number with its noun: `1 sentence`, `2 sentences`.
pub(crate) fn count(n: usize, noun: &str) -> String {
    if n == 1 { format!("1 {noun}") } else { format!("{n} {noun}s") }
}
