//! The settings of a training run: the keys that several sections of the plan share.

use std::fmt;
use std::num::{NonZeroU64, NonZeroUsize};
use std::str::FromStr;

use melm_nn::optim::{AdamSettings, Schedule};
use melm_nn::params::{Parameters, TABLE};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Error;

/// The settings of one training run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TrainingSettings {
    /// The length of the training: `"20 epochs"` or `"300 updates"`.
    pub budget: Budget,
    /// The number of sentences in one update.
    pub batch_size: NonZeroUsize,
    /// The maximum learning rate, which is reached after the warm-up.
    #[schemars(extend("exclusiveMinimum" = 0))]
    pub learning_rate: f64,
    /// The share of all updates in which the learning rate rises from 0 to its maximum.
    #[schemars(range(min = 0, max = 1))]
    pub warmup: f64,
    /// How the learning rate changes after the warm-up: `"linear"` falls to zero, `"constant"` stays the same.
    pub schedule: ScheduleKind,
    /// The decoupled weight decay. 0 means Adam, any other value means `AdamW`.
    #[schemars(range(min = 0))]
    pub weight_decay: f64,
    /// The maximum norm of the gradient. A longer gradient is scaled down to it. 0 means no limit.
    #[schemars(range(min = 0))]
    pub clip: f64,
    /// The interval between two evaluations on dev: a number of epochs, or text such as `"30 updates"`. The end is
    /// always evaluated.
    pub evaluate_every: EvaluationInterval,
    /// Training stops after this many evaluations without improvement. 0 means never.
    pub patience: u64,
    /// Which parameters are kept: the `"best"` on dev (the last ones without a dev set), or the `"last"`.
    pub keep: CheckpointChoice,
    /// Tensors whose names start with one of these prefixes are not trained. The names are those of Hugging Face. Rows
    /// that were added to a tensor for the markers are trained nevertheless (`markers.train`).
    pub freeze: FrozenPrefixes,
}

/// The length of a training run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
#[schemars(extend("examples" = ["20 epochs", "300 updates"]))]
pub enum Budget {
    /// A number of epochs.
    Epochs(NonZeroU64),
    /// A number of updates of the parameters. The last update may be in the middle of an epoch.
    Updates(NonZeroU64),
}

/// The interval between two evaluations on dev.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged, expecting = "expected a number of epochs, or text such as `30 updates`")]
pub enum EvaluationInterval {
    /// A number of epochs, written as a number.
    Epochs(NonZeroU64),
    /// A number of epochs or updates, written as text.
    Other(Budget),
}

impl EvaluationInterval {
    /// Returns an interval of `n` updates.
    pub fn updates(n: NonZeroU64) -> Self {
        Self::Other(Budget::Updates(n))
    }

    /// Returns true if an evaluation is due after `updates` updates. `epochs` is the number of completed epochs if an
    /// epoch has just ended, otherwise `None`.
    pub(super) fn is_due(self, updates: u64, epochs: Option<u64>) -> bool {
        match self {
            Self::Epochs(n) | Self::Other(Budget::Epochs(n)) => {
                epochs.is_some_and(|epochs| epochs.is_multiple_of(n.get()))
            }
            Self::Other(Budget::Updates(n)) => updates.is_multiple_of(n.get()),
        }
    }
}

/// How the learning rate changes after the warm-up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ScheduleKind {
    /// The rate falls linearly to zero.
    Linear,
    /// The rate stays the same.
    Constant,
}

/// Which parameters are kept after training (`docs/fidelity.md` row 2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum CheckpointChoice {
    /// The parameters of the best evaluation on dev, or the last ones without a dev set.
    Best,
    /// The last parameters. The model is still evaluated on dev, and the results are reported.
    Last,
}

/// Names of tensors that are not trained, except for rows that were added to them for a task, such as the rows of
/// markers. Each is `word-embeddings`, the start of a Hugging Face name, or the start of the name that the same tensor
/// has in RoBERTa, such as `roberta.encoder.layer.0.`, which means the first layer in every family.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct FrozenPrefixes(pub Vec<String>);

impl FrozenPrefixes {
    /// The name of the embeddings of pieces in every family.
    const WORD_EMBEDDINGS: &str = "word-embeddings";

    /// Returns true if the tensor with this name is frozen. The name is that of the model or that in RoBERTa.
    pub(crate) fn freezes(&self, name: &str) -> bool {
        self.0.iter().any(|start| Self::matches(start, name))
    }

    fn matches(start: &str, name: &str) -> bool {
        name.starts_with(start) || (start == Self::WORD_EMBEDDINGS && name == TABLE)
    }

    /// Freezes the parameters that match one of the names. Fails if a name matches no parameter, since it is probably
    /// mistyped.
    pub(super) fn apply(&self, parameters: &mut Parameters) -> Result<(), Error> {
        let names = || parameters.list().iter().flat_map(|p| [p.name.as_str(), p.role.as_str()]);
        let is_unused = |start: &&String| !names().any(|name| Self::matches(start, name));
        if let Some(start) = self.0.iter().find(is_unused) {
            return Err(Error::NothingToFreeze { start: start.clone() });
        }
        parameters.freeze(|name| self.freezes(name));
        Ok(())
    }
}

/// The number of updates of a training run, with their batches and learning rates.
pub(super) struct StepSchedule {
    pub(super) total: u64,
    pub(super) per_epoch: u64,
    pub(super) schedule: Schedule,
    batch_size: usize,
}

impl StepSchedule {
    /// Returns the examples of update `at` of an epoch whose examples have the order `order`. The last batch of an
    /// epoch may be smaller.
    pub(super) fn batch<'a>(&self, order: &'a [usize], at: u64) -> &'a [usize] {
        let at = usize::try_from(at).expect("an epoch's updates are fewer than its examples");
        order.chunks(self.batch_size).nth(at).unwrap_or_default()
    }
}

impl TrainingSettings {
    /// Returns the first key with an invalid value and a description of the allowed values. Returns `None` if all
    /// values are valid.
    pub(crate) fn first_invalid(&self) -> Option<(&'static str, &'static str)> {
        let checks = [
            (
                self.learning_rate > 0.0 && self.learning_rate.is_finite(),
                "learning_rate",
                "a number above 0",
            ),
            ((0.0..=1.0).contains(&self.warmup), "warmup", "a share from 0 to 1"),
            (self.weight_decay >= 0.0, "weight_decay", "0 or more"),
            (self.clip >= 0.0, "clip", "0 (no limit) or more"),
        ];
        checks.into_iter().find(|(holds, ..)| !holds).map(|(_, key, expected)| (key, expected))
    }

    /// Returns the learning rate of a step. `factor` is the factor that the schedule gives for this step.
    #[expect(clippy::cast_possible_truncation, reason = "the precision of the engine")]
    pub(super) fn rate(&self, factor: f32) -> f32 {
        (self.learning_rate * f64::from(factor)) as f32
    }

    #[expect(clippy::cast_possible_truncation, reason = "the precision of the engine")]
    pub(super) fn adam(&self) -> AdamSettings {
        let max_norm = (self.clip > 0.0).then_some(self.clip as f32);
        let weight_decay = self.weight_decay as f32;
        AdamSettings { weight_decay, max_norm, ..AdamSettings::default() }
    }

    pub(super) fn steps(&self, n_examples: usize) -> StepSchedule {
        let per_epoch = n_examples.div_ceil(self.batch_size.get()).max(1) as u64;
        let n_steps = match self.budget {
            Budget::Epochs(n) => n.get().saturating_mul(per_epoch),
            Budget::Updates(n) => n.get(),
        };
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a share of a count"
        )]
        let n_warmup = (self.warmup * n_steps as f64).round() as u64;
        let schedule = match self.schedule {
            ScheduleKind::Linear => Schedule::Linear { n_warmup, n_steps },
            ScheduleKind::Constant => Schedule::Constant { n_warmup },
        };
        StepSchedule { total: n_steps, per_epoch, schedule, batch_size: self.batch_size.get() }
    }
}

impl fmt::Display for Budget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (n, noun) = match self {
            Self::Epochs(n) => (n, "epoch"),
            Self::Updates(n) => (n, "update"),
        };
        write!(f, "{n} {noun}{}", if n.get() == 1 { "" } else { "s" })
    }
}

impl From<Budget> for String {
    fn from(budget: Budget) -> Self {
        budget.to_string()
    }
}

/// The error for a text that is not a valid [`Budget`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a valid budget: expected text such as `20 epochs` or `300 updates`")]
pub struct ParseBudgetError(String);

impl FromStr for Budget {
    type Err = ParseBudgetError;

    fn from_str(text: &str) -> Result<Self, ParseBudgetError> {
        let parsed = text.split_once(' ').and_then(|(n, noun)| {
            let n = n.parse().ok()?;
            match noun.trim() {
                "epochs" | "epoch" => Some(Self::Epochs(n)),
                "updates" | "update" => Some(Self::Updates(n)),
                _ => None,
            }
        });
        parsed.ok_or_else(|| ParseBudgetError(text.to_owned()))
    }
}

impl TryFrom<String> for Budget {
    type Error = ParseBudgetError;

    fn try_from(text: String) -> Result<Self, ParseBudgetError> {
        text.parse()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn budgets_are_parsed_and_printed() {
        for text in ["20 epochs", "1 epoch", "300 updates", "1 update"] {
            assert_eq!(text.parse::<Budget>().unwrap().to_string(), text);
        }
        for text in ["", "20", "0 epochs", "-1 updates", "20 steps", "twenty epochs"] {
            assert!(text.parse::<Budget>().is_err(), "{text}");
        }
    }

    #[test]
    fn evaluations_are_due_every_n_epochs_or_updates() {
        #[derive(Deserialize)]
        struct Plan {
            every: EvaluationInterval,
        }
        let due = |text: &str| -> Vec<u64> {
            let Plan { every } = toml::from_str(&format!("every = {text}")).unwrap();
            // Each epoch has 4 updates.
            let ends = |step: u64| step.is_multiple_of(4).then_some(step / 4);
            (1..=16).filter(|step| every.is_due(*step, ends(*step))).collect()
        };
        assert_eq!(due("2"), [8, 16]);
        assert_eq!(due("'2 epochs'"), [8, 16]);
        assert_eq!(due("'5 updates'"), [5, 10, 15]);
        for wrong in ["0", "'3 steps'", "1.5"] {
            let error = toml::from_str::<Plan>(&format!("every = {wrong}")).err().unwrap();
            assert!(error.to_string().contains("such as `30 updates`"), "{error}");
        }
    }

    #[test]
    fn every_example_is_in_exactly_one_batch_of_an_epoch() {
        let settings = TrainingSettings {
            budget: "2 epochs".parse().unwrap(),
            batch_size: NonZeroUsize::new(4).unwrap(),
            learning_rate: 1e-3,
            warmup: 0.25,
            schedule: ScheduleKind::Linear,
            weight_decay: 0.0,
            clip: 0.0,
            evaluate_every: EvaluationInterval::Epochs(NonZeroU64::MIN),
            patience: 0,
            keep: CheckpointChoice::Best,
            freeze: FrozenPrefixes::default(),
        };
        let steps = settings.steps(10);
        assert_eq!((steps.total, steps.per_epoch), (6, 3));
        assert_eq!(steps.schedule, Schedule::Linear { n_warmup: 2, n_steps: 6 });
        let order: Vec<_> = (0..10).rev().collect();
        let all: Vec<_> = (0..3).flat_map(|at| steps.batch(&order, at).to_vec()).collect();
        assert_eq!(all, order);
    }
}
