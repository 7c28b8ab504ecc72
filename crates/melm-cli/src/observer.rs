//! Shows the progress of stages. Decides when stages save their state and when they stop.

use std::time::{Duration, Instant};

use melm::stage::{Control, Event};

use crate::interrupt;
use crate::progress::Progress;
use crate::terminal::Terminal;

/// The time between two saves is at least this many times the duration of a save.
const SAVE_SHARE: u32 = 20;

/// The stage that trains the taggers of a panel. Its steps are those of all taggers together. Between two taggers there
/// is another stage.
const PANEL: &str = "panel";
/// The stage that trains the taggers that check gold. Its steps are those of all taggers together.
const GOLD_CHECK: &str = "gold-check";

/// The title of a stage of a run, for people.
pub fn title(stage: &str) -> &str {
    match stage {
        "finetune" => "fine-tuning the masked language model",
        "daga" => "training the language model",
        "mulda" => "training the encoder-decoder",
        "codemix" => "mixing languages",
        "generate" => "generating",
        "judge" => "training the judge",
        "filter" => "judging",
        "tagger" => "training the tagger",
        PANEL => "training the panel",
        "label" => "labelling the text",
        "pick" => "picking sentences",
        GOLD_CHECK => "checking gold",
        other => other,
    }
}

/// Observes the stages of a run, which are run one after the other.
pub(crate) struct ProgressObserver {
    stage: &'static str,
    progress: Progress,
    terminal: Terminal,
    saves: SaveTimer,
}

/// Decides when a run saves its state.
pub struct SaveTimer {
    last_save: Instant,
    was_asked_to_save: bool,
    /// The value of `--save-every`.
    min_interval: Duration,
    /// The time between two saves. It is longer than `min_interval` if saving is slow.
    save_interval: Duration,
}

impl SaveTimer {
    /// Makes a timer for saves that are at least `min_interval` apart.
    pub fn new(min_interval: Duration) -> Self {
        Self {
            last_save: Instant::now(),
            was_asked_to_save: false,
            min_interval,
            save_interval: min_interval,
        }
    }

    /// Returns [`Control::Save`] if it is time to save, and [`Control::Continue`] otherwise. Call this after each step.
    pub fn control(&mut self) -> Control {
        if std::mem::take(&mut self.was_asked_to_save) {
            // `--save-every 0` saves at every step.
            let share = if self.min_interval.is_zero() { 0 } else { SAVE_SHARE };
            self.save_interval = self.min_interval.max(self.last_save.elapsed() * share);
            self.last_save = Instant::now();
        }
        if self.last_save.elapsed() < self.save_interval {
            return Control::Continue;
        }
        self.last_save = Instant::now();
        self.was_asked_to_save = true;
        Control::Save
    }
}

impl ProgressObserver {
    pub(crate) fn new(save_every: u64, terminal: &Terminal) -> Self {
        Self {
            stage: "",
            progress: Progress::for_steps("", terminal),
            terminal: *terminal,
            saves: SaveTimer::new(Duration::from_secs(save_every)),
        }
    }

    pub(crate) fn on_event(&mut self, stage: &'static str, event: Event<'_>) -> Control {
        if stage != self.stage {
            self.stage = stage;
            self.progress = Progress::for_steps(title(stage), &self.terminal);
            if let Event::Progress { done, .. } = event
                && stage == PANEL
            {
                // The steps of the taggers before this one count as done, but this clock did not measure them.
                self.progress.resume(done.saturating_sub(1));
            }
        }
        match event {
            Event::Resumed { done, of } => {
                self.progress.resume(done);
                self.terminal.info(&format!("{}: resuming after {done} of {of}", title(stage)));
            }
            Event::Epoch(epoch) => {
                let note = epoch.to_string();
                if self.terminal.is_verbose() {
                    self.progress.clear();
                    self.terminal.print(&note);
                }
                self.progress.set_note(note);
            }
            Event::Progress { done, of } => {
                self.progress.set_step(done, of);
                return if interrupt::is_requested() {
                    Control::Stop
                } else {
                    self.saves.control()
                };
            }
            Event::Batch if interrupt::is_requested() => return Control::Stop,
            Event::Batch => {}
        }
        Control::Continue
    }
}
