//! Shows the progress of work that takes longer than two seconds.

use std::io::Write;
use std::time::{Duration, Instant};

use crate::terminal::Terminal;

/// Nothing is shown before this time, because most commands finish earlier.
const DELAY: Duration = Duration::from_secs(2);
/// The time between two updates of the line on a terminal.
const REDRAW_INTERVAL: Duration = Duration::from_millis(200);
/// The time between two lines if standard error is not a terminal.
const LOG_INTERVAL: Duration = Duration::from_secs(10);
/// The clock is read only after this many bytes, because reading it for each sentence would be slow.
const BYTES_PER_CHECK: u64 = 1 << 20;

/// The progress of one pass over data, as a line on standard error.
pub(crate) struct Progress {
    title: String,
    note: String,
    /// The position at which this run started. The time left is estimated from there.
    start: u64,
    total: u64,
    /// The smallest distance between two positions at which the line may be redrawn.
    stride: u64,
    next: u64,
    started: Instant,
    last_drawn: Option<Instant>,
    terminal: Terminal,
}

impl Progress {
    /// Creates the progress of a pass over `total` bytes.
    pub(crate) fn for_bytes(title: &str, total: usize, terminal: &Terminal) -> Self {
        Self::with_stride(title, total as u64, BYTES_PER_CHECK, terminal)
    }

    /// Creates the progress of slow steps. [`Progress::set_step`] sets their number.
    pub(crate) fn for_steps(title: &str, terminal: &Terminal) -> Self {
        Self::with_stride(title, 0, 0, terminal)
    }

    fn with_stride(title: &str, total: u64, stride: u64, terminal: &Terminal) -> Self {
        Self {
            title: title.to_owned(),
            note: String::new(),
            start: 0,
            total,
            stride,
            next: stride,
            started: Instant::now(),
            last_drawn: None,
            terminal: *terminal,
        }
    }

    /// Sets the position at which a resumed run starts.
    pub(crate) fn resume(&mut self, start: u64) {
        self.start = start;
    }

    /// Sets the note, which is shown after the time left.
    pub(crate) fn set_note(&mut self, note: String) {
        self.note = note;
    }

    /// Records that `position` bytes are done.
    pub(crate) fn set_position(&mut self, position: u64) {
        if position >= self.next {
            self.next = position + self.stride;
            self.draw(position);
        }
    }

    /// Records that `position` of `total` steps are done.
    pub(crate) fn set_step(&mut self, position: u64, total: u64) {
        self.total = total;
        self.draw(position);
    }

    /// Removes the line, so that a message can be printed.
    pub(crate) fn clear(&mut self) {
        if self.last_drawn.is_some() && self.terminal.is_interactive() {
            let _ = write!(std::io::stderr(), "\r\u{1b}[K");
        }
    }

    /// Returns the line: the percentage, the note and, as soon as it can be estimated, the time left.
    fn line(&self, position: u64, passed: Duration) -> String {
        let share = 100.0 * position as f64 / self.total.max(1) as f64;
        let mut line = format!("{}: {share:.0} %", self.title);
        let done_now = position.saturating_sub(self.start) as f64;
        if done_now > 0.0 {
            let remaining = self.total.saturating_sub(position) as f64;
            let left = duration(passed.as_secs_f64() * remaining / done_now);
            line.push_str(&format!(", {left} left"));
        }
        if !self.note.is_empty() {
            line.push_str(&format!("; {}", self.note));
        }
        line
    }

    fn draw(&mut self, position: u64) {
        let now = Instant::now();
        let every = if self.terminal.is_interactive() { REDRAW_INTERVAL } else { LOG_INTERVAL };
        let passed = now - self.started;
        let is_recent = self.last_drawn.is_some_and(|drawn| now - drawn < every);
        if self.terminal.is_quiet() || passed < DELAY || is_recent {
            return;
        }
        self.last_drawn = Some(now);
        let line = self.line(position, passed);
        let mut out = std::io::stderr();
        let _ = if self.terminal.is_interactive() {
            write!(out, "\r\u{1b}[K{line}")
        } else {
            writeln!(out, "{line}")
        };
    }
}

/// Formats a number of seconds: `90 s`, `3 min 20 s`, `15 min`, `2.0 h`.
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
    fn time_left_is_shown_after_the_first_step() {
        let mut progress =
            Progress::for_steps("cells", &Terminal::new(crate::terminal::Verbosity::Quiet));
        progress.total = 24;
        let line = |progress: &Progress, at| progress.line(at, Duration::from_secs(10));
        assert_eq!(line(&progress, 0), "cells: 0 %");
        assert_eq!(line(&progress, 6), "cells: 25 %, 30 s left");
        progress.resume(4);
        progress.set_note("F1 61.0".to_owned());
        assert_eq!(line(&progress, 4), "cells: 17 %; F1 61.0");
        assert_eq!(line(&progress, 6), "cells: 25 %, 90 s left; F1 61.0");
    }
}
