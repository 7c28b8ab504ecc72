//! Runs work on another thread, so that the main thread can show progress and notice Ctrl-C.

use std::ffi::OsString;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::time::Duration;

use melm::stage::{Control, Event};
use melm_cli::host::{self, ErrorReport, INTERRUPTED, SaveTimer};
use pyo3::prelude::*;

use crate::error::to_exception;

/// The time between two looks at signals and at the progress. Ctrl-C is noticed after at most this time.
const INTERVAL: Duration = Duration::from_millis(50);

/// The time between two saves of a run in a folder, as `--save-every` of the command.
const SAVE_INTERVAL: Duration = Duration::from_secs(30);

/// What a worker reports to the main thread.
enum Message {
    /// Steps of a stage: done so far, and all.
    Progress { stage: &'static str, done: u64, of: u64 },
    /// A line for the log.
    Note(String),
}

/// The worker's side: reports events, and learns whether to stop.
pub(crate) struct Reporter {
    sender: Sender<Message>,
    is_stopped: Arc<AtomicBool>,
    saves: SaveTimer,
}

impl Reporter {
    /// Reports an event of a stage. Decides whether the stage continues, saves its state or stops.
    pub(crate) fn on_event(&mut self, stage: &'static str, event: Event<'_>) -> Control {
        let is_step = matches!(event, Event::Progress { .. });
        let message = match event {
            Event::Batch => return self.control(),
            Event::Progress { done, of } => Message::Progress { stage, done, of },
            Event::Resumed { done, of } => {
                Message::Note(format!("{}: resuming after {done} of {of}", host::title(stage)))
            }
            Event::Epoch(epoch) => Message::Note(format!("{}: {epoch}", host::title(stage))),
        };
        // The main thread waits for this thread, so it still listens.
        let _ = self.sender.send(message);
        match self.control() {
            Control::Continue if is_step => self.saves.control(),
            control => control,
        }
    }

    /// Reports something that a user should know.
    pub(crate) fn note(&self, note: String) {
        let _ = self.sender.send(Message::Note(note));
    }

    /// Reports the number of steps done. Returns [`Control::Stop`] after Ctrl-C.
    pub(crate) fn on_progress(&self, stage: &'static str, done: u64, of: u64) -> Control {
        let _ = self.sender.send(Message::Progress { stage, done, of });
        self.control()
    }

    /// Returns [`Control::Stop`] after Ctrl-C.
    fn control(&self) -> Control {
        if self.is_stopped.load(Ordering::Relaxed) { Control::Stop } else { Control::Continue }
    }
}

/// Runs `work` on another thread with the GIL released. Calls `on_message(stage, done, of)` for progress and
/// `on_message(note, None, None)` for notes. After Ctrl-C, or if `on_message` fails, asks the work to stop and waits for
/// it; the run folder is then in a state that resumes. A second Ctrl-C ends the process at once.
pub(crate) fn run<T: Send>(
    py: Python<'_>,
    on_message: &Bound<'_, PyAny>,
    work: impl FnOnce(Reporter) -> Result<T, ErrorReport> + Send,
) -> PyResult<T> {
    let on_message = on_message.clone().unbind();
    let is_stopped = Arc::new(AtomicBool::new(false));
    let (sender, messages) = mpsc::channel();
    py.detach(move || {
        std::thread::scope(|scope| {
            let saves = SaveTimer::new(SAVE_INTERVAL);
            let reporter = Reporter { sender, is_stopped: Arc::clone(&is_stopped), saves };
            // When the work ends, the reporter is dropped. The main thread sees this.
            let worker = scope.spawn(move || work(reporter));
            let watched = watch(&messages, &on_message);
            if watched.is_err() {
                is_stopped.store(true, Ordering::Relaxed);
                while !worker.is_finished() {
                    abort_after_signal();
                    std::thread::sleep(INTERVAL);
                }
            }
            let result = worker.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            watched?;
            result.map_err(to_exception)
        })
    })
}

/// Ends the process if the user has pressed Ctrl-C again and does not want to wait for the worker.
fn abort_after_signal() {
    let checked = Python::attach(|py| -> PyResult<()> { py.check_signals() });
    if checked.is_err() {
        std::process::exit(INTERRUPTED.into());
    }
}

/// Passes messages to Python until the worker has ended. Fails after Ctrl-C, or if `on_message` fails.
fn watch(messages: &Receiver<Message>, on_message: &Py<PyAny>) -> PyResult<()> {
    loop {
        let first = messages.recv_timeout(INTERVAL);
        if matches!(first, Err(RecvTimeoutError::Disconnected)) {
            return Ok(());
        }
        let mut batch: Vec<Message> = first.into_iter().chain(messages.try_iter()).collect();
        keep_latest(&mut batch);
        Python::attach(|py| -> PyResult<()> {
            py.check_signals()?;
            for message in batch {
                match message {
                    Message::Progress { stage, done, of } => {
                        on_message.call1(py, (host::title(stage), Some(done), Some(of)))?
                    }
                    Message::Note(note) => {
                        on_message.call1(py, (note, None::<u64>, None::<u64>))?
                    }
                };
            }
            Ok(())
        })?;
        // Steps of small models take microseconds. Collect some before the next call of Python.
        std::thread::sleep(INTERVAL / 5);
    }
}

/// Removes progress that later progress of the same stage replaces.
fn keep_latest(batch: &mut Vec<Message>) {
    let mut next: Option<&'static str> = None;
    let mut kept = Vec::with_capacity(batch.len());
    for message in batch.drain(..).rev() {
        match message {
            Message::Progress { stage, .. } if next == Some(stage) => {}
            message => {
                next = match message {
                    Message::Progress { stage, .. } => Some(stage),
                    Message::Note(_) => None,
                };
                kept.push(message);
            }
        }
    }
    kept.reverse();
    *batch = kept;
}

/// Runs the command line. The first word is the name of the program. Returns the exit code.
#[pyfunction]
pub(crate) fn run_command(py: Python<'_>, words: Vec<OsString>) -> u8 {
    py.detach(|| melm_cli::run(words))
}
