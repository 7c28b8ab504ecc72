//! The one training loop: the masked language model and the tagger learn by it.
//!
//! What a step does depends on the seed and its number alone. Stopped or killed, a training goes on from the last
//! state it wrote, to the same bytes as if nothing had happened.

mod settings;
mod state;

pub use settings::{Budget, Every, FitSettings, Freeze, Keep, Shape};
pub use state::{Best, Epoch};

use melm_nn::device::Device;
use melm_nn::gradients::Gradients;
use melm_nn::optim::Adam;
use melm_nn::params::Parameters;

use crate::Error;
use crate::random::StreamKey;
use crate::stage::{Control, Event, Stage};
use state::Store;

/// Pieces that a model reads at once: enough for the products to be at full speed, few enough for a laptop's memory.
pub(crate) const MOST_PIECES: usize = 2_048;

/// Something that learns from examples.
pub trait Learner {
    /// What is trained.
    fn parameters(&self) -> &Parameters;

    /// What is trained, to be changed.
    fn parameters_mut(&mut self) -> &mut Parameters;

    /// How many examples an epoch has.
    fn n_examples(&self) -> usize;

    /// Adds the gradient of the mean loss over the examples of one step.
    fn accumulate(
        &mut self,
        device: &Device,
        step: &Step<'_>,
        gradients: &mut Gradients,
    ) -> Result<Loss, Error>;

    /// How good it is on the dev set; `None` without one.
    fn evaluate(&mut self, device: &Device) -> Result<Option<Evaluation>, Error>;
}

/// One update of the parameters.
#[derive(Clone, Copy, Debug)]
pub struct Step<'a> {
    /// The pass over the examples, from 0.
    pub epoch: u64,
    /// The updates before this one.
    pub number: u64,
    /// The examples to learn from.
    pub examples: &'a [usize],
    /// Where its randomness comes from.
    pub key: StreamKey,
}

/// A sum of losses and of how many there are.
#[derive(Clone, Copy, Debug, Default, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Loss {
    /// The sum.
    pub sum: f64,
    /// The number of tokens, sentences or masked positions.
    pub n: u64,
}

impl Loss {
    /// The mean; 0 of nothing.
    pub fn mean(self) -> f64 {
        if self.n == 0 { 0.0 } else { self.sum / self.n as f64 }
    }
}

/// How good a model is on the dev set.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Evaluation {
    /// What is measured.
    pub measure: Measure,
    /// Its value.
    pub value: f64,
}

/// What is measured on the dev set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Measure {
    /// Micro-F1 over exact mentions: higher is better.
    F1,
    /// The mean loss: lower is better.
    Loss,
}

impl Evaluation {
    /// Whether it is better than an earlier value of the same measure.
    fn beats(self, before: f64) -> bool {
        match self.measure {
            Measure::F1 => self.value > before,
            Measure::Loss => self.value < before,
        }
    }
}

/// What a training did.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Fitted {
    /// Every epoch, in order.
    pub epochs: Vec<Epoch>,
    /// The epoch whose parameters were kept; the last one's if there is none.
    pub best: Option<Best>,
    /// How many updates were made in all.
    pub n_steps: u64,
}

/// Trains `learner` and leaves it with its best parameters: those of the best evaluation, or the last.
///
/// A training that the stage's folder holds already is not done again. What a card has learnt stays there until
/// [`Parameters::fetch`].
pub fn fit(
    learner: &mut dyn Learner,
    settings: &FitSettings,
    device: &Device,
    stage: &mut Stage<'_>,
) -> Result<Fitted, Error> {
    settings.freeze.apply(learner.parameters_mut())?;
    let mut store = Store::new(stage.folder());
    if let Some(fitted) = store.restore_done(learner.parameters_mut())? {
        return Ok(fitted);
    }
    if learner.n_examples() == 0 {
        return Err(Error::NothingToLearn);
    }
    let mut adam = Adam::new(learner.parameters(), settings.adam());
    let steps = settings.steps(learner.n_examples());
    let mut course = store.restore(&mut adam, learner.parameters_mut())?;
    if course.n_steps > 0 {
        stage.report(Event::Resumed { done: course.n_steps, of: steps.total });
    }
    let mut gradients = Gradients::new(learner.parameters());
    let mut order = Vec::new();
    while course.n_steps < steps.total && !course.has_stopped(settings.patience) {
        let (epoch, at) = (course.n_steps / steps.per_epoch, course.n_steps % steps.per_epoch);
        if at == 0 || order.is_empty() {
            order =
                stage.key().then("order").at(epoch).generator().permutation(learner.n_examples());
        }
        let key = stage.key().then("step").at(course.n_steps);
        let examples = steps.batch(&order, at);
        let step = Step { epoch, number: course.n_steps, examples, key };
        gradients.clear();
        let loss = learner.accumulate(device, &step, &mut gradients)?;
        if !loss.sum.is_finite() {
            return Err(Error::Diverged { stage: stage.name(), step: course.n_steps + 1 });
        }
        course.loss.add(loss);
        let rate = settings.rate(steps.schedule.factor(course.n_steps));
        adam.step(device, rate, (learner.parameters_mut(), &mut gradients))?;
        course.n_steps += 1;

        let is_last = course.n_steps == steps.total;
        let ended = (at + 1 == steps.per_epoch).then_some(epoch + 1);
        let is_due = is_last || settings.evaluate_every.is_due(course.n_steps, ended);
        if ended.is_some() || is_due {
            let evaluation = if is_due { learner.evaluate(device)? } else { None };
            if evaluation.is_some_and(|found| !found.value.is_finite()) {
                let step = course.n_steps;
                return Err(Error::Diverged { stage: stage.name(), step });
            }
            if course.end_epoch(epoch, evaluation) && settings.keep == Keep::Best {
                store.save_best(learner.parameters())?;
            }
            store.write_metrics(stage.name(), &course)?;
            if let Some(epoch) = course.epochs.last() {
                stage.report(Event::Epoch(epoch));
            }
        }
        let wish = stage.report(Event::Progress { done: course.n_steps, of: steps.total });
        if wish != Control::Continue {
            store.save(&adam, learner.parameters(), &course)?;
        }
        if wish == Control::Stop {
            return Err(Error::Interrupted);
        }
    }
    let best = course.best.filter(|_| settings.keep == Keep::Best);
    if best.is_some() {
        store.restore_best(learner.parameters_mut())?;
    }
    let fitted = Fitted { epochs: course.epochs, best, n_steps: course.n_steps };
    store.finish(learner.parameters(), &fitted)?;
    Ok(fitted)
}

/// Neighbours together up to a number of pieces.
pub(crate) fn micro_batches<T>(all: &[T], n_pieces: impl Fn(&T) -> usize) -> Vec<&[T]> {
    let mut parts = Vec::new();
    let (mut start, mut total) = (0, 0);
    for (at, one) in all.iter().enumerate() {
        let n = n_pieces(one);
        if at > start && total + n > MOST_PIECES {
            parts.push(&all[start..at]);
            (start, total) = (at, 0);
        }
        total += n;
    }
    parts.push(&all[start..]);
    parts
}
