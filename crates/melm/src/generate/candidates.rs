//! Which pieces are candidates at a masked position.

use std::collections::BTreeMap;

use melm_nn::mlm::PieceSets;

use super::GenerateSettings;
use super::look::{Casing, Script, Scripts};
use crate::pieces::{PieceKind, PieceKinds, Tokenizer};

/// What a masked position asks of a piece.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Place {
    begins_word: bool,
    casing: Option<Casing>,
    script: Option<Script>,
}

/// What we know of a piece.
struct Traits {
    kind: PieceKind,
    casing: Casing,
    scripts: Scripts,
}

/// The candidates of every kind of place, found when the first such place is met.
pub(super) struct Candidates {
    pieces: Vec<Traits>,
    /// Rows of the model's table, which may be padded beyond the vocabulary.
    n_rows: usize,
    sets: PieceSets,
    numbers: BTreeMap<Place, usize>,
    keeps_case: bool,
    keeps_script: bool,
}

impl Candidates {
    pub(super) fn new(
        tokenizer: &Tokenizer,
        kinds: &PieceKinds,
        settings: &GenerateSettings,
        n_rows: usize,
    ) -> Self {
        let n = u32::try_from(tokenizer.n_pieces()).expect("ids of pieces are u32");
        let traits_of = |id: u32| {
            let text = tokenizer.text(id).unwrap_or_default();
            let is_banned = settings.banned.contains(&text);
            Traits {
                kind: if is_banned { PieceKind::Unfit } else { kinds.kind(id) },
                casing: Casing::of(&text),
                scripts: Scripts::of(&text),
            }
        };
        Self {
            pieces: (0..n).map(traits_of).collect(),
            n_rows,
            sets: PieceSets::default(),
            numbers: BTreeMap::new(),
            keeps_case: settings.keep_case,
            keeps_script: settings.keep_script,
        }
    }

    /// The place of a masked piece: of its token by text, of its sentence where the token has no letter.
    pub(super) fn place(
        &self,
        begins_word: bool,
        piece: Option<&str>,
        token: &str,
        sentence: impl Fn() -> Scripts,
    ) -> Place {
        let one_of = |scripts| match scripts {
            Scripts::One(script) => Some(script),
            Scripts::None | Scripts::Several => None,
        };
        let script = self.keeps_script.then(|| match Scripts::of(token) {
            Scripts::None => one_of(sentence()),
            scripts => one_of(scripts),
        });
        let casing = piece.filter(|_| self.keeps_case).map(|piece| Casing::within(piece, token));
        Place { begins_word, casing, script: script.flatten() }
    }

    /// The number of the set of candidates at a place.
    pub(super) fn set_at(&mut self, place: Place) -> usize {
        if let Some(known) = self.numbers.get(&place) {
            return *known;
        }
        let pieces = &self.pieces;
        let is_in = |id: u32| pieces.get(id as usize).is_some_and(|piece| place.admits(piece));
        let number = self.sets.add(self.n_rows, is_in);
        self.numbers.insert(place, number);
        number
    }

    pub(super) fn sets(&self) -> &PieceSets {
        &self.sets
    }
}

impl Place {
    fn admits(&self, piece: &Traits) -> bool {
        let kind = if self.begins_word { PieceKind::Initial } else { PieceKind::Inner };
        let fits_script = self.script.is_none_or(|script| match piece.scripts {
            Scripts::None => true,
            Scripts::One(other) => other == script,
            Scripts::Several => false,
        });
        piece.kind == kind
            && self.casing.is_none_or(|casing| casing.admits(piece.casing))
            && fits_script
    }
}
