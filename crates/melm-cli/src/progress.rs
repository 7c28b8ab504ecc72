//! How far a piece of work is, once it has taken two seconds.

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
const STRIDE: u64 = 1 << 20;

/// Progress of one pass.
pub(crate) struct Progress {
    what: String,
    note: String,
    /// Where this pass began: what an earlier run did took no time now.
    from: u64,
    total: u64,
    stride: u64,
    next: u64,
    started: Instant,
    drawn: Option<Instant>,
    terminal: Terminal,
}

impl Progress {
    /// A pass over `total` bytes.
    pub(crate) fn new(what: &str, total: usize, terminal: &Terminal) -> Self {
        Self::with_stride(what, (total as u64, STRIDE), terminal)
    }

    /// Work that takes a while for each of its steps, whose number is told with the first.
    pub(crate) fn of_steps(what: &str, terminal: &Terminal) -> Self {
        Self::with_stride(what, (0, 0), terminal)
    }

    fn with_stride(what: &str, (total, stride): (u64, u64), terminal: &Terminal) -> Self {
        Self {
            what: what.to_owned(),
            note: String::new(),
            from: 0,
            total,
            stride,
            next: stride,
            started: Instant::now(),
            drawn: None,
            terminal: *terminal,
        }
    }

    /// So much was done before.
    pub(crate) fn resume(&mut self, from: u64) {
        self.from = from;
    }

    /// Something to show behind the time left.
    pub(crate) fn note(&mut self, note: String) {
        self.note = note;
    }

    /// `position` bytes are done.
    pub(crate) fn at(&mut self, position: usize) {
        let position = position as u64;
        if position >= self.next {
            self.next = position + self.stride;
            self.draw(position);
        }
    }

    /// `position` of `total` steps are done.
    pub(crate) fn at_step(&mut self, position: u64, total: u64) {
        self.total = total;
        self.draw(position);
    }

    /// Takes the line away, so that something else can be said.
    pub(crate) fn clear(&mut self) {
        if self.drawn.is_some() && self.terminal.is_terminal() {
            let _ = write!(std::io::stderr(), "\r\u{1b}[K");
        }
    }

    /// How far it is; the time left once something of it is done.
    fn line(&self, position: u64, passed: Duration) -> String {
        let share = 100.0 * position as f64 / self.total.max(1) as f64;
        let mut line = format!("{}: {share:.0} %", self.what);
        let done_now = position.saturating_sub(self.from) as f64;
        if done_now > 0.0 {
            let to_do = self.total.saturating_sub(position) as f64;
            let left = duration(passed.as_secs_f64() * to_do / done_now);
            line.push_str(&format!(", {left} left"));
        }
        if !self.note.is_empty() {
            line.push_str(&format!("; {}", self.note));
        }
        line
    }

    fn draw(&mut self, position: u64) {
        let now = Instant::now();
        let every = if self.terminal.is_terminal() { EVERY } else { EVERY_PLAIN };
        let passed = now - self.started;
        let waits = self.drawn.is_some_and(|drawn| now - drawn < every);
        if self.terminal.is_quiet() || passed < PATIENCE || waits {
            return;
        }
        self.drawn = Some(now);
        let line = self.line(position, passed);
        let mut out = std::io::stderr();
        let _ = if self.terminal.is_terminal() {
            write!(out, "\r\u{1b}[K{line}")
        } else {
            writeln!(out, "{line}")
        };
    }
}

/// Seconds as people say them.
pub(crate) fn duration(seconds: f64) -> String {
    if seconds < 100.0 {
        format!("{seconds:.0} s")
    } else if seconds < 600.0 {
        format!("{} min {:.0} s", (seconds / 60.0).floor(), (seconds % 60.0).floor())
    } else if seconds < 6_000.0 {
        format!("{:.0} min", seconds / 60.0)
    } else {
        format!("{:.1} h", seconds / 3_600.0)
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_left_is_said_once_something_is_done() {
        let mut progress =
            Progress::of_steps("cells", &Terminal::new(crate::terminal::Loudness::Quiet));
        progress.total = 24;
        let line = |progress: &Progress, at| progress.line(at, Duration::from_secs(10));
        assert_eq!(line(&progress, 0), "cells: 0 %");
        assert_eq!(line(&progress, 6), "cells: 25 %, 30 s left");
        progress.resume(4);
        progress.note("F1 61.0".to_owned());
        assert_eq!(line(&progress, 4), "cells: 17 %; F1 61.0");
        assert_eq!(line(&progress, 6), "cells: 25 %, 90 s left; F1 61.0");
    }
}
