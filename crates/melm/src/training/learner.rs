//! The interface between the training loop and a model, and the parts of a training step that all models share.

use melm_nn::device::Device;
use melm_nn::dropout::Dropout;
use melm_nn::gradients::Gradients;
use melm_nn::params::Parameters;

use crate::Error;
use crate::random::StreamKey;
use crate::stage::OnBatch;

/// The maximum number of pieces in one batch. Larger batches need too much memory for a laptop; smaller ones make
/// matrix products slow.
pub(crate) const MAX_BATCH_PIECES: usize = 2_048;

/// A model together with its training examples and its dev set.
///
/// [`accumulate_step`] and [`mean_loss`] do the work that does not depend on the model.
pub(crate) trait Learner {
    /// An example as the model reads it in one step. It includes everything that is redrawn in each epoch, such as
    /// masks.
    type Example;

    /// The parameters to train.
    fn parameters(&mut self) -> &mut Parameters;

    /// The number of examples in an epoch.
    fn n_examples(&self) -> usize;

    /// Returns the example with this index, as it is in `epoch` (counted from 0).
    fn example(&self, number: usize, epoch: u64) -> Self::Example;

    /// The number of pieces that the model reads for an example.
    fn n_pieces(&self, example: &Self::Example) -> usize;

    /// The number of losses that an example adds to the mean of its step. A loss belongs to a token, a sentence or a
    /// masked position.
    fn n_losses(&self, example: &Self::Example) -> usize;

    /// The dropout of one step.
    fn dropout(&self, seed: u64, step: u64) -> Dropout;

    /// Adds the gradients of a batch, scaled by `batch.scale`. Returns the sum of the losses without this scale.
    fn accumulate(
        &mut self,
        device: &Device,
        batch: &LearnerBatch<'_, Self::Example>,
        gradients: &mut Gradients,
    ) -> Result<f64, Error>;

    /// Evaluates the model on the dev set. Calls `on_batch` after each batch. Returns `None` if there is nothing to
    /// evaluate on.
    fn evaluate(
        &mut self,
        device: &Device,
        on_batch: OnBatch<'_>,
    ) -> Result<Option<Evaluation>, Error>;
}

/// Some examples of one step.
pub(crate) struct LearnerBatch<'a, T> {
    pub(crate) examples: &'a [T],
    /// The factor by which every loss is multiplied: 1 / the number of losses in the whole step.
    pub(crate) scale: f32,
    pub(crate) dropout: Dropout,
}

/// One update of the parameters.
#[derive(Clone, Copy, Debug)]
pub(super) struct Step<'a> {
    /// The index of the epoch, from 0.
    pub(super) epoch: u64,
    /// The number of updates before this one.
    pub(super) number: u64,
    /// The indices of the examples to learn from.
    pub(super) examples: &'a [usize],
    /// The random stream of this step.
    pub(super) key: StreamKey,
}

/// The sum and the number of losses.
#[derive(Clone, Copy, Debug, Default, PartialEq, serde::Serialize, serde::Deserialize)]
pub(crate) struct Loss {
    /// The sum.
    pub(crate) sum: f64,
    /// The number of losses. A loss belongs to a token, a sentence or a masked position.
    pub(crate) n: u64,
}

impl Loss {
    /// The mean, or 0 if there are no losses.
    pub(crate) fn mean(self) -> f64 {
        if self.n == 0 { 0.0 } else { self.sum / self.n as f64 }
    }

    pub(super) fn add(&mut self, other: Self) {
        self.sum += other.sum;
        self.n += other.n;
    }
}

/// The result of a model on the dev set.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Evaluation {
    pub(crate) metric: Metric,
    pub(crate) value: f64,
}

/// The quantity that is measured on the dev set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Metric {
    /// Micro-F1 over exact mentions; higher is better.
    F1,
    /// The mean loss; lower is better.
    Loss,
}

impl Evaluation {
    /// Returns true if this value is better than an earlier value of the same metric.
    pub(super) fn beats(self, earlier: f64) -> bool {
        match self.metric {
            Metric::F1 => self.value > earlier,
            Metric::Loss => self.value < earlier,
        }
    }
}

/// Adds the gradient of the mean loss over the examples of one step to the parameters' gradients. Calls `on_batch` after
/// each batch. Returns the losses.
pub(super) fn accumulate_step<L: Learner>(
    learner: &mut L,
    device: &Device,
    step: &Step<'_>,
    gradients: &mut Gradients,
    on_batch: OnBatch<'_>,
) -> Result<Loss, Error> {
    let examples: Vec<_> =
        step.examples.iter().map(|number| learner.example(*number, step.epoch)).collect();
    let n: usize = examples.iter().map(|example| learner.n_losses(example)).sum();
    let seed = step.key.then("dropout").generator().bits();
    let dropout = learner.dropout(seed, step.number);
    let mut loss = Loss { sum: 0.0, n: n as u64 };
    for part in micro_batches(&examples, |example| learner.n_pieces(example)) {
        let batch = LearnerBatch { examples: part, scale: 1.0 / n.max(1) as f32, dropout };
        loss.sum += learner.accumulate(device, &batch, gradients)?;
        on_batch()?;
    }
    Ok(loss)
}

/// Computes the mean loss over a dev set. `loss` computes the losses of a batch. Calls `on_batch` after each batch.
///
/// Returns `None` if the dev set has no examples or no losses.
pub(crate) fn mean_loss<T>(
    dev: &[T],
    n_pieces: impl Fn(&T) -> usize,
    mut loss: impl FnMut(&[T]) -> Result<Loss, Error>,
    on_batch: OnBatch<'_>,
) -> Result<Option<Evaluation>, Error> {
    if dev.is_empty() {
        return Ok(None);
    }
    let mut total = Loss::default();
    for part in micro_batches(dev, n_pieces) {
        total.add(loss(part)?);
        on_batch()?;
    }
    let evaluation = Evaluation { metric: Metric::Loss, value: total.mean() };
    Ok((total.n > 0).then_some(evaluation))
}

/// Splits examples into consecutive batches of at most [`MAX_BATCH_PIECES`] pieces. An example with more pieces is a
/// batch of its own.
fn micro_batches<T>(examples: &[T], n_pieces: impl Fn(&T) -> usize) -> Vec<&[T]> {
    let mut batches = Vec::new();
    let (mut start, mut total) = (0, 0);
    for (at, example) in examples.iter().enumerate() {
        let n = n_pieces(example);
        if at > start && total + n > MAX_BATCH_PIECES {
            batches.push(&examples[start..at]);
            (start, total) = (at, 0);
        }
        total += n;
    }
    batches.push(&examples[start..]);
    batches
}
