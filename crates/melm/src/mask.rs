//! Masked positions: which entity pieces the model has to guess, in training (section 2.2) and generation (2.3).
//!
//! Only pieces of entity tokens are ever masked. What is masked or kept as one is the [`Unit`]: by default the piece.
//! Three kinds of piece are no unit, since no guess could replace them: a bare `▁`, part of a character (unless its
//! whole token is the unit), and all pieces of a token with an `<unk>`, whose spelling only the source knows.

use std::num::NonZeroU32;

use melm_nn::mlm::MaskedBatch;
use serde::{Deserialize, Serialize};

use crate::linearize::{EntityToken, Linearized};
use crate::pieces::{PieceKind, PieceKinds};
use crate::random::{Generator, StreamKey};
use crate::rate::Rate;

/// The paper's masking rates in training and in generation (appendix, hyperparameter tuning).
const ETA: Rate = Rate::constant(0.7);
const MU: Rate = Rate::constant(0.5);

/// What is masked or kept as one.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Unit {
    /// Each piece by itself.
    #[default]
    Piece,
    /// All pieces of a token.
    Token,
}

/// When training masks are drawn anew (FIDELITY row 3).
///
/// As text `every-epoch` or `cycle-30`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Refresh {
    /// At the beginning of each epoch (the paper's text).
    #[default]
    EveryEpoch,
    /// So many are drawn once and used in turn (the authors' code: 30).
    Cycled(NonZeroU32),
}

/// The text says not when masks are drawn anew.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("expected `every-epoch` or `cycle-30`, found `{0}`")]
pub struct NotARefresh(String);

impl TryFrom<String> for Refresh {
    type Error = NotARefresh;

    fn try_from(text: String) -> Result<Self, NotARefresh> {
        match (text.as_str(), text.strip_prefix("cycle-").map(str::parse)) {
            ("every-epoch", _) => Ok(Self::EveryEpoch),
            (_, Some(Ok(n))) => Ok(Self::Cycled(n)),
            _ => Err(NotARefresh(text)),
        }
    }
}

impl From<Refresh> for String {
    fn from(refresh: Refresh) -> Self {
        match refresh {
            Refresh::EveryEpoch => "every-epoch".to_owned(),
            Refresh::Cycled(n) => format!("cycle-{n}"),
        }
    }
}

/// How entity units are masked in training.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct TrainingMask {
    /// The paper's eta: each unit is masked with this probability.
    pub rate: Rate,
    /// What is masked as one.
    pub unit: Unit,
    /// When masks are drawn anew.
    pub refresh: Refresh,
}

impl Default for TrainingMask {
    /// The paper's.
    fn default() -> Self {
        Self { rate: ETA, unit: Unit::default(), refresh: Refresh::default() }
    }
}

/// Over which units the number of masked ones is drawn (FIDELITY row 4).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Scope {
    /// Those of a mention (the paper).
    #[default]
    Mention,
    /// Those of a token (the authors' code).
    Token,
    /// No draw: all units of all mentions.
    Whole,
}

/// How entity units are masked in generation.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct GenerationMask {
    /// The paper's mu: of n units a rate is masked that is drawn from N(mu, 1/n²).
    pub mean: Rate,
    /// What is masked as one.
    pub unit: Unit,
    /// What n counts the units of.
    pub scope: Scope,
}

impl Default for GenerationMask {
    /// The paper's.
    fn default() -> Self {
        Self { mean: MU, unit: Unit::default(), scope: Scope::default() }
    }
}

/// A linearized sentence with pieces hidden.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Masked {
    /// The pieces, `<mask>` at the masked positions.
    pub pieces: Vec<u32>,
    /// The masked positions, in rising order; none if the draw masked nothing.
    pub positions: Vec<usize>,
    /// The hidden pieces.
    pub originals: Vec<u32>,
}

impl Masked {
    /// Adds the sentence to a batch. `key` identifies it among all examples, for its dropout.
    pub(crate) fn push_to(&self, key: u64, batch: &mut MaskedBatch) {
        let start = batch.sentences.n_rows();
        batch.sentences.push(&self.pieces, key);
        batch.positions.extend(self.positions.iter().map(|position| start + position));
        batch.originals.extend(&self.originals);
    }
}

/// Draws masked positions.
#[derive(Debug, Clone)]
pub struct Masker {
    kinds: PieceKinds,
}

/// Positions that are masked together.
type Positions = Vec<usize>;

impl Masker {
    /// Creates a masker for windows whose pieces are of these kinds.
    pub fn new(kinds: PieceKinds) -> Self {
        Self { kinds }
    }

    /// The kinds of the vocabulary's pieces.
    pub(crate) fn kinds(&self) -> &PieceKinds {
        &self.kinds
    }

    /// Section 2.2: masks each unit with the same probability, from the stream of the epoch and the sentence.
    ///
    /// The paper does not say what becomes of a sentence in which the draw masks nothing. Here it has no masked
    /// positions, hence no loss: forcing one would raise the rate in short mentions above eta.
    pub fn for_training(
        &self,
        linearized: &Linearized,
        settings: &TrainingMask,
        key: StreamKey,
        epoch: u64,
    ) -> Masked {
        let drawn = match settings.refresh {
            Refresh::EveryEpoch => epoch,
            Refresh::Cycled(n) => epoch % u64::from(n.get()),
        };
        let mut generator = linearized.stream(key.at(drawn)).generator();
        let groups = self.groups(linearized, settings.unit, |_| 0);
        let units = groups.into_iter().flatten();
        let masked = units.filter(|_| generator.uniform() < settings.rate.value());
        self.hide(linearized, &masked.collect::<Vec<_>>())
    }

    /// Section 2.3: masks a drawn number of the units of every mention, from the stream of the sentence below `key`,
    /// which names the round.
    pub fn for_generation(
        &self,
        linearized: &Linearized,
        settings: &GenerationMask,
        key: StreamKey,
    ) -> Masked {
        let mut generator = linearized.stream(key).generator();
        let groups = self.groups(linearized, settings.unit, |entity| match settings.scope {
            Scope::Mention | Scope::Whole => entity.mention,
            Scope::Token => entity.token,
        });
        let mut masked = Vec::new();
        for mut group in groups {
            if settings.scope != Scope::Whole {
                let count = n_masked(group.len(), settings.mean, &mut generator);
                let chosen = generator.subset(group.len(), count);
                group = chosen.into_iter().map(|at| std::mem::take(&mut group[at])).collect();
            }
            masked.extend(group);
        }
        self.hide(linearized, &masked)
    }

    /// How many entity tokens of the windows can never be masked, since they have no unit.
    pub fn n_unmaskable(&self, windows: &[Linearized], unit: Unit) -> usize {
        let no_unit = |window, entity| self.units(window, unit, entity).is_empty();
        windows.iter().map(|w| w.entities.iter().filter(|entity| no_unit(w, entity)).count()).sum()
    }

    /// The units of a window, those of entity tokens with equal `group_of` together; no group is empty.
    fn groups(
        &self,
        linearized: &Linearized,
        unit: Unit,
        group_of: impl Fn(&EntityToken) -> usize,
    ) -> Vec<Vec<Positions>> {
        let same_group = |a: &EntityToken, b: &EntityToken| group_of(a) == group_of(b);
        let groups = linearized.entities.chunk_by(same_group).map(|entities| {
            entities.iter().flat_map(|entity| self.units(linearized, unit, entity)).collect()
        });
        groups.filter(|units: &Vec<_>| !units.is_empty()).collect()
    }

    fn units(&self, linearized: &Linearized, unit: Unit, entity: &EntityToken) -> Vec<Positions> {
        let pieces = &linearized.pieces[entity.place.clone()];
        if pieces.contains(&self.kinds.unk) {
            return Vec::new();
        }
        let positions = entity.place.clone().zip(pieces);
        match unit {
            Unit::Piece => positions
                .filter(|(_, piece)| self.kinds.is_predictable(**piece))
                .map(|(position, _)| vec![position])
                .collect(),
            Unit::Token => {
                let is_bare = |piece: u32| self.kinds.kind(piece) == PieceKind::Bare;
                let all: Positions =
                    positions.filter(|(_, piece)| !is_bare(**piece)).map(|(at, _)| at).collect();
                if all.is_empty() { Vec::new() } else { vec![all] }
            }
        }
    }

    fn hide(&self, linearized: &Linearized, units: &[Positions]) -> Masked {
        let positions = units.concat();
        let mut pieces = linearized.pieces.clone();
        let hide = |position: &usize| std::mem::replace(&mut pieces[*position], self.kinds.mask);
        let originals = positions.iter().map(hide).collect();
        Masked { pieces, positions, originals }
    }
}

/// How many of `n` units to mask: `n` times a rate from N(`mean`, 1/n²), rounded, drawn again until it is in `1..=n`.
fn n_masked(n: usize, mean: Rate, generator: &mut Generator) -> usize {
    loop {
        // n · N(mean, 1/n²) is N(mean · n, 1), which is also how the authors' code has it.
        let count = (mean.value() * n as f64 + generator.normal()).round();
        if 1.0 <= count && count <= n as f64 {
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "it is in 1..=n"
            )]
            return count as usize;
        }
    }
}
