//! The systems that are compared: every method, and controls that make no drafts.

use std::fmt;
use std::str::FromStr;

use melm::methods::Method;
use melm::methods::NO_PRETRAINING;
use serde::{Deserialize, Serialize};

/// A system of the paper's tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum System {
    /// A method of augmentation, or gold alone.
    Method(Method),
    /// Gold repeated, until it has as many sentences as gold with one draft of each sentence in every round. The
    /// negative control.
    GoldDuplicated,
    /// Several taggers on gold alone, whose mentions are decided by majority. The control of a panel.
    GoldEnsemble,
    /// Gold sentences that were picked by the disagreement of a panel instead of at random ([`crate::Picking`]).
    Picked,
    /// Gold, and a copy of gold whose entities are replaced by entities of extra gold sentences (Figure 1).
    AddEntity,
    /// Gold, and as many extra gold sentences, whose entities are replaced by entities of gold (Figure 1).
    AddContext,
}

impl System {
    /// Gold alone, which all other systems are compared with.
    pub const GOLD: Self = Self::Method(Method::Gold);

    /// The systems that are not methods.
    const CONTROLS: [Self; 5] =
        [Self::GoldDuplicated, Self::GoldEnsemble, Self::Picked, Self::AddEntity, Self::AddContext];

    /// The name, as in grids and ledgers.
    pub fn name(self) -> &'static str {
        match self {
            Self::Method(method) => method.name(),
            Self::GoldDuplicated => "gold-duplicated",
            Self::GoldEnsemble => "gold-ensemble",
            Self::Picked => "picked",
            Self::AddEntity => "add-entity",
            Self::AddContext => "add-context",
        }
    }

    /// The title of the system's row in a table. This is the name, except for `MulDA` without a pretrained model, whose
    /// title says so.
    pub fn title(self, is_pretrained: bool) -> &'static str {
        let is_new = self == Self::Method(Method::Mulda) && !is_pretrained;
        if is_new { NO_PRETRAINING } else { self.name() }
    }

    /// All systems in the order of tables: gold, controls, methods.
    pub fn all() -> impl Iterator<Item = Self> {
        let methods = Method::ALL.into_iter().map(Self::Method);
        let methods = methods.filter(|system| *system != Self::GOLD);
        std::iter::once(Self::GOLD).chain(Self::CONTROLS).chain(methods)
    }

    /// The position in [`Self::all`].
    pub(crate) fn rank(self) -> usize {
        Self::all().position(|other| other == self).unwrap_or(usize::MAX)
    }

    /// Returns the method that makes the drafts of this system, or `None` if it has no drafts.
    pub fn drafts(self) -> Option<Method> {
        match self {
            Self::Method(method) => Some(method).filter(|method| *method != Method::Gold),
            Self::GoldDuplicated
            | Self::GoldEnsemble
            | Self::Picked
            | Self::AddEntity
            | Self::AddContext => None,
        }
    }

    /// Returns the number of sentences that a cell with `size` sentences draws from each language.
    pub(crate) fn n_drawn(self, size: usize) -> usize {
        match self {
            Self::AddEntity | Self::AddContext => 2 * size,
            Self::Method(_) | Self::GoldDuplicated | Self::GoldEnsemble | Self::Picked => size,
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
        found.ok_or_else(|| format!("`{name}` is not a method: expected one of {}", names()))
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
