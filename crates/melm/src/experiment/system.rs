//! What is compared: every method, and a control that adds nothing.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::augment::Method;
use crate::baselines::NO_PRETRAINING;

/// A row of the paper's tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum System {
    /// A method of augmentation, or gold alone.
    Method(Method),
    /// Gold as often as all drafts would make it: the negative control.
    GoldDuplicated,
}

/// The name of the control.
const GOLD_DUPLICATED: &str = "gold-duplicated";

impl System {
    /// Gold alone, which all others are compared with.
    pub const GOLD: Self = Self::Method(Method::Gold);

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Method(method) => method.name(),
            Self::GoldDuplicated => GOLD_DUPLICATED,
        }
    }

    /// What its row is called: its name, unless that would promise more than it is. Grids run `MulDA` without pretraining.
    pub fn title(self) -> &'static str {
        match self {
            Self::Method(Method::Mulda) => NO_PRETRAINING,
            other => other.name(),
        }
    }

    /// All of them, gold and its control first.
    pub fn all() -> impl Iterator<Item = Self> {
        let methods = Method::NAMES.into_iter().map(|(_, method)| Self::Method(method));
        let (gold, others): (Vec<_>, Vec<_>) = methods.partition(|system| *system == Self::GOLD);
        gold.into_iter().chain([Self::GoldDuplicated]).chain(others)
    }

    /// Its place among all.
    pub(super) fn rank(self) -> usize {
        Self::all().position(|other| other == self).unwrap_or(usize::MAX)
    }

    /// The method that makes its drafts, if it has any.
    pub fn drafts(self) -> Option<Method> {
        match self {
            Self::Method(Method::Gold) | Self::GoldDuplicated => None,
            Self::Method(method) => Some(method),
        }
    }
}

impl fmt::Display for System {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for System {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        let names = || Self::all().map(Self::name).collect::<Vec<_>>().join(", ");
        let found = Self::all().find(|system| system.name() == name);
        found.ok_or_else(|| format!("`{name}` is no method: expected one of {}", names()))
    }
}

impl TryFrom<String> for System {
    type Error = String;

    fn try_from(name: String) -> Result<Self, String> {
        name.parse()
    }
}

impl From<System> for String {
    fn from(system: System) -> Self {
        system.name().to_owned()
    }
}
