//! Masking: draws the entity pieces that the model has to predict, in training (section 2.2) and generation (section
//! 2.3).
//!
//! Only pieces of entity tokens are masked. A [`Unit`], a piece or a token, is masked as a whole or not at all.
//! Some pieces are never masked, because no prediction could replace them: a bare `▁`; part of a character, unless
//! the unit is the whole token; and all pieces of a token that contains `<unk>`, because its text cannot be spelled
//! from pieces.

use std::num::NonZeroU32;

use melm_nn::mlm::MaskedBatch;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::linearize::{EntityToken, Linearized};
use crate::pieces::{PieceKind, PieceKinds};
use crate::random::{Generator, StreamKey};
use crate::rate::Rate;

/// The paper's masking rates: eta in training and mu in generation (appendix, hyperparameter tuning).
const TRAINING_RATE: Rate = Rate::constant(0.7);
const GENERATION_MEAN: Rate = Rate::constant(0.5);

/// The unit that is masked as a whole or not at all (`docs/fidelity.md` rows 3 and 4).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Unit {
    /// Each piece by itself (the authors' code).
    #[default]
    Piece,
    /// All pieces of a token (the paper).
    Token,
}

/// When training masks are redrawn (`docs/fidelity.md` row 3). Written as `every-epoch` or `cycle-30`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
#[schemars(extend("examples" = ["every-epoch", "cycle-30"]))]
pub enum Refresh {
    /// At the beginning of each epoch (the paper's text).
    #[default]
    EveryEpoch,
    /// This number of masks is drawn once for each sentence. The epochs use them in turn (the authors' code: 30).
    Cycled(NonZeroU32),
}

/// The error for a text that is not a valid [`Refresh`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("expected `every-epoch` or `cycle-30`, found `{0}`")]
pub struct InvalidRefresh(String);

impl TryFrom<String> for Refresh {
    type Error = InvalidRefresh;

    fn try_from(text: String) -> Result<Self, InvalidRefresh> {
        match (text.as_str(), text.strip_prefix("cycle-").map(str::parse)) {
            ("every-epoch", _) => Ok(Self::EveryEpoch),
            (_, Some(Ok(n))) => Ok(Self::Cycled(n)),
            _ => Err(InvalidRefresh(text)),
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

/// The settings for masking in training.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct TrainingMask {
    /// The probability that a unit is masked (the paper's eta).
    pub rate: Rate,
    /// The unit that is masked as a whole.
    pub unit: Unit,
    /// When masks are redrawn.
    pub refresh: Refresh,
}

impl Default for TrainingMask {
    /// The paper's settings, except that the unit is the piece.
    fn default() -> Self {
        Self { rate: TRAINING_RATE, unit: Unit::default(), refresh: Refresh::default() }
    }
}

/// The group of units for which the number of masked units is drawn (`docs/fidelity.md` row 4).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Scope {
    /// The units of a mention (the paper).
    #[default]
    Mention,
    /// The units of a token (the authors' code).
    Token,
    /// Nothing is drawn: all units of all mentions are masked.
    Whole,
}

/// The settings for masking in generation.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct GenerationMask {
    /// The mean masking rate (the paper's mu). For n units the rate is drawn from N(mu, 1/n²).
    pub mean: Rate,
    /// The unit that is masked as a whole.
    pub unit: Unit,
    /// The group whose number of units is n.
    pub scope: Scope,
}

impl Default for GenerationMask {
    /// The paper's settings, except that the unit is the piece.
    fn default() -> Self {
        Self { mean: GENERATION_MEAN, unit: Unit::default(), scope: Scope::default() }
    }
}

/// A window with masked pieces.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Masked {
    /// The pieces, with `<mask>` at the masked positions.
    pub pieces: Vec<u32>,
    /// The masked positions in ascending order; empty if the draw masked nothing.
    pub positions: Vec<usize>,
    /// The original pieces at these positions.
    pub originals: Vec<u32>,
}

impl Masked {
    /// Adds the sentence to a batch. `key` identifies the sentence among all examples and seeds its dropout.
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

/// The positions of one unit, which are masked together.
type UnitPositions = Vec<usize>;

impl Masker {
    /// Creates a masker for a vocabulary whose pieces have these kinds.
    pub fn new(kinds: PieceKinds) -> Self {
        Self { kinds }
    }

    /// The kinds of the vocabulary's pieces.
    pub(crate) fn kinds(&self) -> &PieceKinds {
        &self.kinds
    }

    /// Masks each unit with the same probability (section 2.2). Uses the random stream of the epoch and the sentence,
    /// below `key`.
    ///
    /// The paper does not say what happens to a sentence in which the draw masks nothing. Here such a sentence has no
    /// masked position and no loss. If at least one unit were always masked, the masking rate in short mentions would
    /// be above eta.
    pub fn mask_for_training(
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
        self.apply(linearized, &masked.collect::<Vec<_>>())
    }

    /// Masks a random number of the units of every mention (section 2.3). Uses the random stream of the sentence
    /// below `key`, the key of the round.
    pub fn mask_for_generation(
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
                let count = draw_n_masked(group.len(), settings.mean, &mut generator);
                let chosen = generator.subset(group.len(), count);
                group = chosen.into_iter().map(|at| std::mem::take(&mut group[at])).collect();
            }
            masked.extend(group);
        }
        self.apply(linearized, &masked)
    }

    /// Counts the entity tokens of the windows that can never be masked, because none of their pieces can be masked.
    pub fn n_unmaskable(&self, windows: &[Linearized], unit: Unit) -> usize {
        let no_unit = |window, entity| self.units(window, unit, entity).is_empty();
        windows.iter().map(|w| w.entities.iter().filter(|entity| no_unit(w, entity)).count()).sum()
    }

    /// Returns the units of a window in groups. Two units are in the same group if `group_of` is equal for their
    /// entity tokens. Empty groups are left out.
    fn groups(
        &self,
        linearized: &Linearized,
        unit: Unit,
        group_of: impl Fn(&EntityToken) -> usize,
    ) -> Vec<Vec<UnitPositions>> {
        let same_group = |a: &EntityToken, b: &EntityToken| group_of(a) == group_of(b);
        let groups = linearized.entities.chunk_by(same_group).map(|entities| {
            entities.iter().flat_map(|entity| self.units(linearized, unit, entity)).collect()
        });
        groups.filter(|units: &Vec<_>| !units.is_empty()).collect()
    }

    /// Returns the units of an entity token.
    fn units(
        &self,
        linearized: &Linearized,
        unit: Unit,
        entity: &EntityToken,
    ) -> Vec<UnitPositions> {
        let pieces = &linearized.pieces[entity.piece_range.clone()];
        if pieces.contains(&self.kinds.unk) {
            return Vec::new();
        }
        let positions = entity.piece_range.clone().zip(pieces);
        match unit {
            Unit::Piece => positions
                .filter(|(_, piece)| self.kinds.is_predictable(**piece))
                .map(|(position, _)| vec![position])
                .collect(),
            Unit::Token => {
                let is_bare = |piece: u32| self.kinds.kind(piece) == PieceKind::Bare;
                let all: UnitPositions =
                    positions.filter(|(_, piece)| !is_bare(**piece)).map(|(at, _)| at).collect();
                if all.is_empty() { Vec::new() } else { vec![all] }
            }
        }
    }

    /// Replaces the pieces of the given units by `<mask>`.
    fn apply(&self, linearized: &Linearized, units: &[UnitPositions]) -> Masked {
        let positions = units.concat();
        let mut pieces = linearized.pieces.clone();
        let hide = |position: &usize| std::mem::replace(&mut pieces[*position], self.kinds.mask);
        let originals = positions.iter().map(hide).collect();
        Masked { pieces, positions, originals }
    }
}

/// Draws how many of `n` units are masked: `n` times a rate drawn from N(`mean`, 1/n²), rounded. Draws again until
/// the result is in `1..=n`.
fn draw_n_masked(n: usize, mean: Rate, generator: &mut Generator) -> usize {
    loop {
        // n · N(mean, 1/n²) is N(mean · n, 1), as in the authors' code.
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
