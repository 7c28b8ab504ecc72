//! How a training goes about it: the keys that the plan's sections share.

use std::fmt;
use std::num::{NonZeroU64, NonZeroUsize};
use std::str::FromStr;

use melm_nn::optim::{AdamSettings, Schedule};
use melm_nn::params::Parameters;
use serde::{Deserialize, Serialize};

use crate::Error;

/// The settings of one training.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FitSettings {
    /// How long: `"20 epochs"` or `"300 updates"`.
    pub budget: Budget,
    /// Sentences an update learns from.
    pub batch_size: NonZeroUsize,
    /// The highest learning rate.
    pub learning_rate: f64,
    /// Share of all updates over which the rate rises.
    pub warmup: f64,
    /// What the rate does after that: `"linear"` falls to zero, `"constant"` stays.
    pub schedule: Shape,
    /// Decoupled weight decay: 0 is Adam, anything else `AdamW`.
    pub weight_decay: f64,
    /// The longest gradient, longer ones are scaled down to it; 0 for no limit.
    pub clip: f64,
    /// Epochs, or `"30 updates"`, between two evaluations on dev; the end is always evaluated.
    pub evaluate_every: Every,
    /// Evaluations without a better one after which training stops; 0 for never.
    pub patience: u64,
    /// Which parameters are kept: `"best"` on dev, where there is one, or `"last"`.
    pub keep: Keep,
    /// Beginnings of the names of tensors that stay as they are.
    pub freeze: Freeze,
}

/// How long a training goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Budget {
    /// Passes over the examples.
    Epochs(NonZeroU64),
    /// Updates of the parameters, however many passes that is.
    Updates(NonZeroU64),
}

/// How often something is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged, expecting = "expected a number of epochs, or text such as `30 updates`")]
pub enum Every {
    /// At the end of every so many passes over the examples.
    Epochs(NonZeroU64),
    /// After every so many epochs or updates.
    Other(Budget),
}

impl Every {
    /// Every so many updates.
    pub fn updates(n: NonZeroU64) -> Self {
        Self::Other(Budget::Updates(n))
    }

    /// Whether it is due after so many updates; `epochs` is their number at the end of one.
    pub(super) fn is_due(self, updates: u64, epochs: Option<u64>) -> bool {
        match self {
            Self::Epochs(n) | Self::Other(Budget::Epochs(n)) => {
                epochs.is_some_and(|epochs| epochs.is_multiple_of(n.get()))
            }
            Self::Other(Budget::Updates(n)) => updates.is_multiple_of(n.get()),
        }
    }
}

/// The course of the learning rate after its warm-up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Shape {
    /// It falls to zero.
    Linear,
    /// It stays.
    Constant,
}

/// Which of a training's parameters are kept (FIDELITY row 2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Keep {
    /// Those of the best evaluation on dev; the last without a dev set.
    Best,
    /// The last ones. Dev is evaluated all the same, and said.
    Last,
}

/// Beginnings of names of tensors, as Hugging Face names them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Freeze(pub Vec<String>);

impl Freeze {
    /// Freezes what begins so; a beginning that nothing has is a slip.
    pub(super) fn apply(&self, parameters: &mut Parameters) -> Result<(), Error> {
        let names = || parameters.list().iter().map(|parameter| parameter.name.as_str());
        let is_idle = |start: &&String| !names().any(|name| name.starts_with(start.as_str()));
        if let Some(start) = self.0.iter().find(is_idle) {
            return Err(Error::NothingToFreeze { start: start.clone() });
        }
        parameters.freeze(|name| self.0.iter().any(|start| name.starts_with(start.as_str())));
        Ok(())
    }
}

/// The updates of a training.
pub(super) struct Steps {
    pub(super) total: u64,
    pub(super) per_epoch: u64,
    pub(super) schedule: Schedule,
    batch_size: usize,
}

impl Steps {
    /// The examples of the update `at` within its epoch. The last batch of an epoch may be smaller.
    pub(super) fn batch<'a>(&self, order: &'a [usize], at: u64) -> &'a [usize] {
        let at = usize::try_from(at).expect("an epoch's updates are fewer than its examples");
        order.chunks(self.batch_size).nth(at).unwrap_or_default()
    }
}

impl FitSettings {
    /// The first key whose value cannot be, and what is expected of it.
    pub(crate) fn fault(&self) -> Option<(&'static str, &'static str)> {
        let claims = [
            (
                self.learning_rate > 0.0 && self.learning_rate.is_finite(),
                "learning_rate",
                "a number above 0",
            ),
            ((0.0..=1.0).contains(&self.warmup), "warmup", "a share from 0 to 1"),
            (self.weight_decay >= 0.0, "weight_decay", "0 or more"),
            (self.clip >= 0.0, "clip", "0 (no limit) or more"),
        ];
        claims.into_iter().find(|(holds, ..)| !holds).map(|(_, key, expected)| (key, expected))
    }

    /// The rate at a step.
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

    pub(super) fn steps(&self, n_examples: usize) -> Steps {
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
            Shape::Linear => Schedule::Linear { n_warmup, n_steps },
            Shape::Constant => Schedule::Constant { n_warmup },
        };
        Steps { total: n_steps, per_epoch, schedule, batch_size: self.batch_size.get() }
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

/// The text is no budget.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is no budget: expected `20 epochs` or `300 updates`")]
pub struct NotABudget(String);

impl FromStr for Budget {
    type Err = NotABudget;

    fn from_str(text: &str) -> Result<Self, NotABudget> {
        let parsed = text.split_once(' ').and_then(|(n, noun)| {
            let n = n.parse().ok()?;
            match noun.trim() {
                "epochs" | "epoch" => Some(Self::Epochs(n)),
                "updates" | "update" => Some(Self::Updates(n)),
                _ => None,
            }
        });
        parsed.ok_or_else(|| NotABudget(text.to_owned()))
    }
}

impl TryFrom<String> for Budget {
    type Error = NotABudget;

    fn try_from(text: String) -> Result<Self, NotABudget> {
        text.parse()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_budget_reads_as_people_write_it() {
        for text in ["20 epochs", "1 epoch", "300 updates", "1 update"] {
            assert_eq!(text.parse::<Budget>().unwrap().to_string(), text);
        }
        for text in ["", "20", "0 epochs", "-1 updates", "20 steps", "twenty epochs"] {
            assert!(text.parse::<Budget>().is_err(), "{text}");
        }
    }

    #[test]
    fn evaluations_come_by_epochs_or_by_updates() {
        #[derive(Deserialize)]
        struct Plan {
            every: Every,
        }
        let due = |text: &str| -> Vec<u64> {
            let Plan { every } = toml::from_str(&format!("every = {text}")).unwrap();
            // Epochs of 4 updates.
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
    fn every_example_is_in_one_batch_of_an_epoch() {
        let settings = FitSettings {
            budget: "2 epochs".parse().unwrap(),
            batch_size: NonZeroUsize::new(4).unwrap(),
            learning_rate: 1e-3,
            warmup: 0.25,
            schedule: Shape::Linear,
            weight_decay: 0.0,
            clip: 0.0,
            evaluate_every: Every::Epochs(NonZeroU64::MIN),
            patience: 0,
            keep: Keep::Best,
            freeze: Freeze::default(),
        };
        let steps = settings.steps(10);
        assert_eq!((steps.total, steps.per_epoch), (6, 3));
        assert_eq!(steps.schedule, Schedule::Linear { n_warmup: 2, n_steps: 6 });
        let order: Vec<_> = (0..10).rev().collect();
        let all: Vec<_> = (0..3).flat_map(|at| steps.batch(&order, at).to_vec()).collect();
        assert_eq!(all, order);
    }
}
