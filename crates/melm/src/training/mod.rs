//! The training loop of all models: the masked language model, the tagger, DAGA and `MulDA`.
//!
//! Each step depends only on the seed and the step's number. A training run that was stopped or killed resumes from
//! the last saved state. It ends with the same bytes as a run that was never interrupted.

mod learner;
mod settings;
mod state;

pub(crate) use learner::{
    Evaluation, Learner, LearnerBatch, Loss, MAX_BATCH_PIECES, Metric, mean_loss,
};
pub use settings::{
    Budget, CheckpointChoice, EvaluationInterval, FrozenPrefixes, ParseBudgetError, ScheduleKind,
    TrainingSettings,
};
pub use state::{BestEvaluation, EpochMetrics, read_outcome};

use melm_nn::device::Device;
use melm_nn::gradients::Gradients;
use melm_nn::optim::Adam;

use crate::Error;
use crate::stage::{Control, Event, Stage};
use learner::{Step, accumulate_step};
use settings::StepSchedule;
use state::{CheckpointStore, TrainingState};

/// The result of a training run.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct TrainingOutcome {
    /// The metrics of every epoch, in order.
    pub epochs: Vec<EpochMetrics>,
    /// The evaluation whose parameters were kept. `None` if the last parameters were kept.
    pub best: Option<BestEvaluation>,
    /// The total number of updates.
    pub n_steps: u64,
}

/// Trains `learner`. Afterwards `learner` has the parameters that the settings ask for: those of the best evaluation,
/// or the last ones.
///
/// If the stage's folder contains a finished training run, the parameters of that run are loaded instead. Parameters
/// that were trained on a GPU stay on the GPU until `Parameters::fetch`.
///
/// Fails if there is no example, if the loss or the gradients of an update are not finite, or if a file cannot be read or written. Fails with
/// [`Error::Interrupted`] if the observer asks to stop.
pub(crate) fn train<L: Learner>(
    learner: &mut L,
    settings: &TrainingSettings,
    device: &Device,
    stage: &mut Stage<'_>,
) -> Result<TrainingOutcome, Error> {
    settings.freeze.apply(learner.parameters())?;
    let store = CheckpointStore::new(stage.folder());
    if let Some(outcome) = store.restore_done(learner.parameters())? {
        return Ok(outcome);
    }
    if learner.n_examples() == 0 {
        return Err(Error::NothingToLearn);
    }
    let mut training = Training::start_or_resume(learner, settings, device, store)?;
    let total = training.steps.total;
    if training.state.n_steps > 0 {
        stage.report(Event::Resumed { done: training.state.n_steps, of: total });
    }
    loop {
        let outcome = match training.advance(stage) {
            Ok(Control::Continue) if training.is_finished() => return training.finish(stage),
            Ok(Control::Continue) => Ok(()),
            Ok(Control::Save) => training.save(stage),
            Ok(Control::Stop) | Err(Error::Interrupted) => {
                training.save(stage).and(Err(Error::Interrupted))
            }
            Err(error) => Err(error),
        };
        if let Err(error) = outcome {
            return Err(training.explain(error, stage));
        }
    }
}

/// A training run in progress.
struct Training<'a, L> {
    learner: &'a mut L,
    settings: &'a TrainingSettings,
    device: &'a Device,
    store: CheckpointStore,
    steps: StepSchedule,
    adam: Adam,
    gradients: Gradients,
    state: TrainingState,
    /// The number of updates in the saved state, if there is one.
    saved: Option<u64>,
    /// The order of the examples in the current epoch. Empty before the first step and after resuming.
    order: Vec<usize>,
}

impl<'a, L: Learner> Training<'a, L> {
    fn start_or_resume(
        learner: &'a mut L,
        settings: &'a TrainingSettings,
        device: &'a Device,
        store: CheckpointStore,
    ) -> Result<Self, Error> {
        let steps = settings.steps(learner.n_examples());
        let mut adam = Adam::new(learner.parameters(), settings.adam())?;
        let state = store.restore(&mut adam, learner.parameters())?;
        let gradients = Gradients::new(learner.parameters())?;
        let saved = (state.n_steps > 0).then_some(state.n_steps);
        let order = Vec::new();
        Ok(Self { learner, settings, device, store, steps, adam, gradients, state, saved, order })
    }

    /// Returns true if all steps are done, or the score on dev has not improved for long.
    fn is_finished(&self) -> bool {
        self.state.n_steps >= self.steps.total || self.state.has_stopped(self.settings.patience)
    }

    /// Makes one update, and evaluates the model when this is due. Returns what the observer wants. After an error the
    /// state can be saved: an interrupted update is made again, and an interrupted evaluation too.
    fn advance(&mut self, stage: &mut Stage<'_>) -> Result<Control, Error> {
        if !self.state.awaits_evaluation {
            if self.is_finished() {
                return Ok(Control::Continue);
            }
            self.update(stage)?;
            self.state.awaits_evaluation = true;
        }
        self.evaluate_if_due(stage)?;
        self.state.awaits_evaluation = false;
        let (done, of) = (self.state.n_steps, self.steps.total);
        Ok(stage.report(Event::Progress { done, of }))
    }

    /// Makes one update.
    fn update(&mut self, stage: &mut Stage<'_>) -> Result<(), Error> {
        let number = self.state.n_steps;
        let (epoch, at) = (number / self.steps.per_epoch, number % self.steps.per_epoch);
        if at == 0 || self.order.is_empty() {
            let mut generator = stage.key().then("order").at(epoch).generator();
            self.order = generator.permutation(self.learner.n_examples());
        }
        let key = stage.key().then("step").at(number);
        let examples = self.steps.batch(&self.order, at);
        let step = Step { epoch, number, examples, key };
        self.gradients.clear();
        let (learner, gradients) = (&mut *self.learner, &mut self.gradients);
        let loss = accumulate_step(learner, self.device, &step, gradients, &mut || stage.batch())
            .map_err(|error| name_overflow(error, stage, number + 1))?;
        if !loss.sum.is_finite() {
            // A GPU that stopped at an earlier update says so; the loss of later ones has no meaning.
            self.check_finite(stage)?;
            return Err(diverged(stage, number + 1, "its loss is"));
        }
        let rate = self.settings.rate(self.steps.schedule.factor(number));
        let stepped =
            self.adam.step(self.device, rate, self.learner.parameters(), &mut self.gradients);
        stepped.map_err(|error| name_stage(error, stage))?;
        // The state may be saved after an error, and then has only whole updates.
        self.state.loss.add(loss);
        self.state.n_steps += 1;
        Ok(())
    }

    /// Evaluates the model and records the epoch, if this is due after the last update.
    fn evaluate_if_due(&mut self, stage: &mut Stage<'_>) -> Result<(), Error> {
        let n_steps = self.state.n_steps;
        let epoch = (n_steps - 1) / self.steps.per_epoch;
        let ended = n_steps.is_multiple_of(self.steps.per_epoch).then_some(epoch + 1);
        let is_due =
            n_steps == self.steps.total || self.settings.evaluate_every.is_due(n_steps, ended);
        if ended.is_some() || is_due {
            self.check_finite(stage)?;
        }
        let evaluation = if is_due {
            let found = self.learner.evaluate(self.device, &mut || stage.batch());
            found.map_err(|error| name_overflow(error, stage, n_steps))?
        } else {
            None
        };
        if ended.is_some() || is_due {
            self.record(epoch, evaluation, stage)?;
        }
        Ok(())
    }

    /// Records the metrics of an epoch, or of the part of an epoch since the last evaluation. Saves the parameters if
    /// they are the best.
    fn record(
        &mut self,
        epoch: u64,
        evaluation: Option<Evaluation>,
        stage: &mut Stage<'_>,
    ) -> Result<(), Error> {
        if evaluation.is_some_and(|found| !found.value.is_finite()) {
            return Err(diverged(stage, self.state.n_steps, "its loss on dev is"));
        }
        let is_best = self.state.end_epoch(epoch, evaluation);
        if is_best && self.settings.keep == CheckpointChoice::Best {
            self.store.save_best(self.learner.parameters())?;
        }
        self.store.write_metrics(stage.name(), &self.state.epochs)?;
        if let Some(epoch) = self.state.epochs.last() {
            stage.report(Event::Epoch(epoch));
        }
        Ok(())
    }

    /// Fails if a GPU found that an earlier update is not finite. The CPU finds this in the update itself.
    fn check_finite(&self, stage: &Stage<'_>) -> Result<(), Error> {
        self.adam.check_finite().map_err(|error| name_stage(error, stage))
    }

    fn save(&mut self, stage: &Stage<'_>) -> Result<(), Error> {
        self.check_finite(stage)?;
        self.store.save(&self.adam, self.learner.parameters(), &self.state)?;
        self.saved = stage.folder().map(|_| self.state.n_steps);
        Ok(())
    }

    /// Adds what is saved to the error of a GPU. Saves the state if only memory was short: the parameters are then those
    /// after the last update. After any other error, what is in GPU memory may be wrong, and the last saved state is kept.
    fn explain(&mut self, error: Error, stage: &Stage<'_>) -> Error {
        if let Error::Engine(melm_nn::Error::DeviceMemory { .. }) = &error {
            // If this fails too, the earlier state is kept.
            let _ = self.save(stage);
        }
        // An evaluation follows the update that was made last.
        let step = self.state.n_steps + u64::from(!self.state.awaits_evaluation);
        device_failure(error, stage, step, self.saved)
    }

    fn finish(self, stage: &Stage<'_>) -> Result<TrainingOutcome, Error> {
        let (n_steps, saved) = (self.state.n_steps, self.saved);
        self.finish_on_device().map_err(|error| device_failure(error, stage, n_steps, saved))
    }

    fn finish_on_device(self) -> Result<TrainingOutcome, Error> {
        let Self { learner, settings, store, state, .. } = self;
        let best = state.best.filter(|_| settings.keep == CheckpointChoice::Best);
        if best.is_some() {
            store.restore_best(learner.parameters())?;
        }
        let outcome = TrainingOutcome { epochs: state.epochs, best, n_steps: state.n_steps };
        store.finish(learner.parameters(), &outcome)?;
        Ok(outcome)
    }
}

/// Adds the stage, the update and what is saved to an error of a GPU. Returns other errors as they are.
fn device_failure(error: Error, stage: &Stage<'_>, step: u64, saved: Option<u64>) -> Error {
    match error {
        Error::Engine(
            source @ (melm_nn::Error::Cuda { .. } | melm_nn::Error::DeviceMemory { .. }),
        ) => Error::DeviceFailed { stage: stage.name(), step, saved, source: Box::new(source) },
        other => other,
    }
}

/// Adds the stage to the error of an update that is not finite.
fn name_stage(error: melm_nn::Error, stage: &Stage<'_>) -> Error {
    match error {
        melm_nn::Error::NotFiniteStep { step } => diverged(stage, step, "its gradients are"),
        other => other.into(),
    }
}

/// Explains the error of a CRF that finds no sequence of tags. The tags of the training set are a sequence, so that the scores
/// are not finite.
fn name_overflow(error: Error, stage: &Stage<'_>, step: u64) -> Error {
    match error {
        Error::Engine(melm_nn::Error::NoTagSequence { .. }) => {
            diverged(stage, step, "its scores are")
        }
        other => other,
    }
}

fn diverged(stage: &Stage<'_>, step: u64, what: &'static str) -> Error {
    Error::Diverged { stage: stage.name(), step, what }
}
