//! Shows the progress of stages, and decides when they save their state and when they stop.

use std::time::{Duration, Instant};

use melm::stage::{Control, Event};

use crate::interrupt;
use crate::progress::Progress;
use crate::terminal::Terminal;

/// Saving takes at most one part in this many of the time.
const SAVE_SHARE: u32 = 20;

/// The title of a stage.
fn title(stage: &str) -> &str {
    match stage {
        "finetune" => "fine-tuning the masked language model",
        "daga" => "training the language model",
        "mulda" => "training the encoder-decoder",
        "codemix" => "mixing languages",
        "generate" => "generating",
        "judge" => "training the judge",
        "filter" => "judging",
        "tagger" => "training the tagger",
        other => other,
    }
}

/// Observes the stages of a run, one after the other.
pub(crate) struct ProgressObserver {
    stage: &'static str,
    progress: Progress,
    terminal: Terminal,
    saved: Instant,
    is_saving: bool,
    /// The least time between two saves, as the user asks for.
    at_least: Duration,
    /// The time between two saves; longer than asked for if saving is slow.
    every: Duration,
}

impl ProgressObserver {
    pub(crate) fn new(save_every: u64, terminal: &Terminal) -> Self {
        let at_least = Duration::from_secs(save_every);
        Self {
            stage: "",
            progress: Progress::of_steps("", terminal),
            terminal: *terminal,
            saved: Instant::now(),
            is_saving: false,
            at_least,
            every: at_least,
        }
    }

    pub(crate) fn on_event(&mut self, stage: &'static str, event: Event<'_>) -> Control {
        if stage != self.stage {
            self.stage = stage;
            self.progress = Progress::of_steps(title(stage), &self.terminal);
        }
        match event {
            Event::Resumed { done, of } => {
                self.progress.resume(done);
                self.terminal.say(&format!("{}: resuming after {done} of {of}", title(stage)));
            }
            Event::Epoch(epoch) => {
                let dev = match (epoch.dev_f1, epoch.dev_loss) {
                    (Some(f1), _) => format!(", dev F1 {:.2}", f1 * 100.0),
                    (_, Some(loss)) => format!(", dev loss {loss:.3}"),
                    _ => String::new(),
                };
                let best = if epoch.is_best { " (best)" } else { "" };
                let note = format!("epoch {}: loss {:.3}{dev}{best}", epoch.epoch, epoch.loss);
                if self.terminal.is_verbose() {
                    self.progress.clear();
                    self.terminal.line(&note);
                }
                self.progress.note(note);
            }
            Event::Progress { done, of } => {
                self.progress.at_step(done, of);
                return self.control();
            }
        }
        Control::Continue
    }

    fn control(&mut self) -> Control {
        if interrupt::is_requested() {
            return Control::Stop;
        }
        if std::mem::take(&mut self.is_saving) {
            // `--save-every 0` saves at every step.
            let fair = if self.at_least.is_zero() { 0 } else { SAVE_SHARE };
            self.every = self.at_least.max(self.saved.elapsed() * fair);
            self.saved = Instant::now();
        }
        if self.saved.elapsed() < self.every {
            return Control::Continue;
        }
        self.saved = Instant::now();
        self.is_saving = true;
        Control::Save
    }
}
