//! The pieces that may be predicted at each masked position: a few sets of pieces, and the index of the allowed set for
//! each position.

/// Sets of pieces, stored as one bit per piece.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PieceSets {
    sets: Vec<Box<[u64]>>,
}

impl PieceSets {
    /// Adds the set of all pieces below `vocab_size` for which `is_in` returns true. Returns the index of the set.
    ///
    /// ```
    /// use melm_nn::mlm::PieceSets;
    /// let mut sets = PieceSets::default();
    /// let even = sets.add(10, |piece| piece % 2 == 0);
    /// assert!(sets.contains(even, 4) && !sets.contains(even, 5) && !sets.contains(even, 400));
    /// ```
    pub fn add(&mut self, vocab_size: usize, is_in: impl Fn(u32) -> bool) -> usize {
        let mut words = vec![0_u64; vocab_size.div_ceil(64)];
        for (at, piece) in (0..vocab_size).zip(0_u32..) {
            words[at / 64] |= u64::from(is_in(piece)) << (at % 64);
        }
        self.sets.push(words.into());
        self.sets.len() - 1
    }

    /// Returns true if a piece is in a set.
    ///
    /// # Panics
    /// Panics if there is no set with this index.
    pub fn contains(&self, set: usize, piece: usize) -> bool {
        self.sets[set].get(piece / 64).is_some_and(|word| word >> (piece % 64) & 1 == 1)
    }

    /// Returns the number of pieces in a set.
    ///
    /// # Panics
    /// Panics if there is no set with this index.
    pub fn n_pieces(&self, set: usize) -> usize {
        self.sets[set].iter().map(|word| word.count_ones() as usize).sum()
    }
}

/// Sets of pieces, and the index of the allowed set for each masked position of a batch.
#[derive(Clone, Copy, Debug)]
pub struct AllowedPieces<'a> {
    /// The sets.
    pub sets: &'a PieceSets,
    /// The index of the allowed set for each masked position.
    pub set_of: &'a [usize],
}

#[cfg(feature = "cuda")]
impl<'a> AllowedPieces<'a> {
    /// Restricts the masked positions to a range. The sets stay the same.
    pub(crate) fn part(self, positions: std::ops::Range<usize>) -> Self {
        Self { sets: self.sets, set_of: &self.set_of[positions] }
    }

    /// Returns the bits of all sets, one set after another.
    pub(crate) fn words(&self) -> impl Iterator<Item = u64> + 'a {
        self.sets.sets.iter().flatten().copied()
    }
}

impl AllowedPieces<'_> {
    pub(super) fn check(&self, n_positions: usize) {
        assert_eq!(self.set_of.len(), n_positions, "expected one set for each masked position");
        let n_sets = self.sets.sets.len();
        assert!(
            self.set_of.iter().all(|set| *set < n_sets),
            "expected numbers of sets that were added"
        );
    }

    /// Returns true if a piece is allowed at a masked position.
    pub(super) fn contains(self, position: usize, piece: usize) -> bool {
        self.sets.contains(self.set_of[position], piece)
    }
}
