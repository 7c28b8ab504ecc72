//! What is compared: every method, and a control that adds nothing.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use melm::augment::Method;
use melm::baselines::NO_PRETRAINING;

/// A row of the paper's tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum System {
    /// A method of augmentation, or gold alone.
    Method(Method),
    /// Gold as often as one draft a sentence and round would make it: the negative control.
    GoldDuplicated,
    /// Gold, and its sentences with entities of as much extra gold (Figure 1).
    AddEntity,
    /// Gold, and the sentences of as much extra gold with its entities (Figure 1).
    AddContext,
}

/// The names of what is no method.
const OTHERS: [(&str, System); 3] = [
    ("gold-duplicated", System::GoldDuplicated),
    ("add-entity", System::AddEntity),
    ("add-context", System::AddContext),
];

impl System {
    /// Gold alone, which all others are compared with.
    pub const GOLD: Self = Self::Method(Method::Gold);

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Method(method) => method.name(),
            other => {
                let found = OTHERS.into_iter().find(|(_, system)| *system == other);
                found.expect("every system has a name").0
            }
        }
    }

    /// What its row is called: its name, unless that would promise more than it is. Grids run `MulDA` without pretraining.
    pub fn title(self) -> &'static str {
        match self {
            Self::Method(Method::Mulda) => NO_PRETRAINING,
            other => other.name(),
        }
    }

    /// All of them, gold and what needs no method first.
    pub fn all() -> impl Iterator<Item = Self> {
        let methods = Method::NAMES.into_iter().map(|(_, method)| Self::Method(method));
        let (gold, others): (Vec<_>, Vec<_>) = methods.partition(|system| *system == Self::GOLD);
        gold.into_iter().chain(OTHERS.map(|(_, system)| system)).chain(others)
    }

    /// Its place among all.
    pub(crate) fn rank(self) -> usize {
        Self::all().position(|other| other == self).unwrap_or(usize::MAX)
    }

    /// The method that makes its drafts, if it has any.
    pub fn drafts(self) -> Option<Method> {
        match self {
            Self::Method(Method::Gold) => None,
            Self::Method(method) => Some(method),
            _ => None,
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
