//! How far a pass over a file is, once it has taken two seconds.

use std::io::Write;
use std::time::{Duration, Instant};

use crate::terminal::Terminal;

/// Nothing is shown before this: most files are done by then.
const PATIENCE: Duration = Duration::from_secs(2);
/// How often the line is drawn on a terminal.
const EVERY: Duration = Duration::from_millis(200);
/// How often a line is written where there is no terminal.
const EVERY_PLAIN: Duration = Duration::from_secs(10);
/// The clock is read after this many bytes, not for each sentence.
const STRIDE: usize = 1 << 20;

/// Progress of one pass.
pub(crate) struct Progress {
    what: String,
    total: usize,
    next: usize,
    started: Instant,
    drawn: Option<Instant>,
    terminal: Terminal,
}

impl Progress {
    /// A pass over `total` bytes.
    pub(crate) fn new(what: &str, total: usize, terminal: &Terminal) -> Self {
        let started = Instant::now();
        Self {
            what: what.to_owned(),
            total,
            next: STRIDE,
            started,
            drawn: None,
            terminal: *terminal,
        }
    }

    /// `position` bytes are done.
    pub(crate) fn at(&mut self, position: usize) {
        if position >= self.next {
            self.next = position + STRIDE;
            self.draw(position);
        }
    }

    fn draw(&mut self, position: usize) {
        let now = Instant::now();
        let every = if self.terminal.is_terminal() { EVERY } else { EVERY_PLAIN };
        let passed = now - self.started;
        let waits = self.drawn.is_some_and(|drawn| now - drawn < every);
        if self.terminal.is_quiet() || passed < PATIENCE || waits {
            return;
        }
        self.drawn = Some(now);
        let share = position as f64 / self.total.max(1) as f64;
        let left = passed.as_secs_f64() * (1.0 - share) / share.max(f64::EPSILON);
        let line = format!("{}: {:.0} %, {left:.0} s left", self.what, share * 100.0);
        let mut out = std::io::stderr();
        let _ = if self.terminal.is_terminal() {
            write!(out, "\r\u{1b}[K{line}")
        } else {
            writeln!(out, "{line}")
        };
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if self.drawn.is_some() && self.terminal.is_terminal() {
            let _ = write!(std::io::stderr(), "\r\u{1b}[K");
        }
    }
}
