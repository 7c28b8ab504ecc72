//! The pieces that may be chosen at a masked position.

use std::collections::HashMap;

use melm_nn::mlm::PieceSets;

use super::GenerateSettings;
use super::casing::Casing;
use super::script::Scripts;
use crate::entity_lm::EntityLm;
use crate::pieces::PieceKind;

/// The properties that a piece must have at a masked position.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Constraint {
    begins_word: bool,
    /// True for a piece that the tokenizer makes a word of its own, such as punctuation in BERT.
    stands_alone: Option<bool>,
    casing: Option<Casing>,
    scripts: Option<Scripts>,
}

/// A masked piece and its place in the token.
pub(super) struct MaskedPiece<'a> {
    /// True if the piece begins a word.
    pub(super) begins_word: bool,
    /// True if the tokenizer makes the piece a word of its own. `None` if any piece may take its place.
    pub(super) stands_alone: Option<bool>,
    /// The text of the piece, or `None` if it is only part of a character.
    pub(super) text: Option<&'a str>,
}

/// The properties of a piece that a [`Constraint`] can ask for.
struct PieceTraits {
    kind: PieceKind,
    stands_alone: Option<bool>,
    casing: Casing,
    scripts: Scripts,
}

/// The traits of every piece, and the candidate set of each constraint that occurred so far.
pub(super) struct Candidates {
    pieces: Vec<PieceTraits>,
    /// The number of rows of the model's piece table, which may be padded beyond the vocabulary.
    n_rows: usize,
    sets: PieceSets,
    set_numbers: HashMap<Constraint, usize>,
    keep_case: bool,
    keep_script: bool,
}

impl Candidates {
    /// Reads the traits of every piece of the model's vocabulary.
    pub(super) fn new(lm: &EntityLm, settings: &GenerateSettings) -> Self {
        let (tokenizer, kinds) = (lm.tokenizer(), lm.masker().kinds());
        let n = u32::try_from(tokenizer.n_pieces()).expect("ids of pieces are u32");
        let traits = |id: u32| {
            let text = tokenizer.text(id).unwrap_or_default();
            let is_banned = settings.banned.contains(&text);
            PieceTraits {
                kind: if is_banned { PieceKind::Unfit } else { kinds.kind(id) },
                stands_alone: tokenizer.stands_alone(id),
                casing: Casing::from_text(&text),
                scripts: Scripts::from_text(&text),
            }
        };
        Self {
            pieces: (0..n).map(traits).collect(),
            n_rows: lm.model().config().vocab_size,
            sets: PieceSets::default(),
            set_numbers: HashMap::new(),
            keep_case: settings.keep_case,
            keep_script: settings.keep_script,
        }
    }

    /// Returns the constraint on the pieces that may replace a masked piece of `token`. `masked` describes the piece.
    ///
    /// If the token has several pieces, BERT's punctuation is replaced only by punctuation, and other pieces only by
    /// other pieces. Otherwise two words of the token would become one, or one word two.
    ///
    /// With `keep_script`, a candidate must fit the scripts of the token, or those of the sentence if the token has
    /// no letter. If these letters mix scripts, every script is allowed.
    pub(super) fn constraint(
        &self,
        masked: &MaskedPiece<'_>,
        token: &str,
        sentence_scripts: impl Fn() -> Scripts,
    ) -> Constraint {
        let scripts = self.keep_script.then(|| match Scripts::from_text(token) {
            scripts if scripts.is_any() => sentence_scripts(),
            scripts => scripts,
        });
        let scripts = scripts.filter(|scripts| !scripts.is_any() && !scripts.is_mixed());
        let text = masked.text.filter(|_| self.keep_case);
        let casing = text.map(|text| Casing::in_token(text, token));
        let MaskedPiece { begins_word, stands_alone, .. } = *masked;
        Constraint { begins_word, stands_alone, casing, scripts }
    }

    /// Returns the index of the set of pieces that a constraint allows. Builds the set at the first call with this
    /// constraint.
    pub(super) fn set_for(&mut self, constraint: Constraint) -> usize {
        if let Some(known) = self.set_numbers.get(&constraint) {
            return *known;
        }
        let pieces = &self.pieces;
        let is_in = |id: u32| pieces.get(id as usize).is_some_and(|piece| constraint.allows(piece));
        let number = self.sets.add(self.n_rows, is_in);
        self.set_numbers.insert(constraint, number);
        number
    }

    pub(super) fn sets(&self) -> &PieceSets {
        &self.sets
    }
}

impl Constraint {
    fn allows(&self, piece: &PieceTraits) -> bool {
        let kind = if self.begins_word { PieceKind::Initial } else { PieceKind::Inner };
        piece.kind == kind
            && self.stands_alone.is_none_or(|alone| piece.stands_alone == Some(alone))
            && self.casing.is_none_or(|casing| casing.allows(piece.casing))
            && self.scripts.is_none_or(|scripts| scripts.overlaps(piece.scripts))
    }
}
