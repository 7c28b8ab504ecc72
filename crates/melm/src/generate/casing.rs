//! The casing of a text.

/// The casing of a piece.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Casing {
    /// No letter has a case.
    None,
    /// Lower case only.
    Lower,
    /// A single upper-case letter. Both `Bonn` and `BONN` can begin with such a piece.
    SingleUpper,
    /// An upper-case letter, then lower-case letters.
    Title,
    /// Upper case only, at least two letters.
    Upper,
    /// Any other mixture.
    Mixed,
}

impl Casing {
    /// Returns the casing of a text. Only letters that have a case are considered.
    pub(super) fn from_text(text: &str) -> Self {
        let mut cased = text.chars().filter(|c| c.is_uppercase() || c.is_lowercase());
        let Some(first) = cased.next() else { return Self::None };
        let (n_upper, n_lower) = cased.fold((0, 0), |(upper, lower), c| {
            if c.is_uppercase() { (upper + 1, lower) } else { (upper, lower + 1) }
        });
        match (first.is_uppercase(), n_upper, n_lower) {
            (false, 0, _) => Self::Lower,
            (true, 0, 0) => Self::SingleUpper,
            (true, 0, _) => Self::Title,
            (true, _, 0) => Self::Upper,
            _ => Self::Mixed,
        }
    }

    /// Returns the casing of a piece in its token. A single upper-case letter counts as [`Casing::Upper`] if the
    /// token is all upper case, and as [`Casing::Title`] otherwise.
    pub(super) fn in_token(piece: &str, token: &str) -> Self {
        match Self::from_text(piece) {
            Self::SingleUpper if Self::from_text(token) == Self::Upper => Self::Upper,
            Self::SingleUpper => Self::Title,
            casing => casing,
        }
    }

    /// Returns true if a piece of casing `other` may replace one of this casing.
    pub(super) fn allows(self, other: Self) -> bool {
        match self {
            Self::Title | Self::Upper => other == self || other == Self::SingleUpper,
            Self::Mixed => other != Self::None,
            Self::None | Self::Lower | Self::SingleUpper => other == self,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn casing_is_read_from_the_letters_that_have_a_case() {
        for (text, casing) in [
            ("Bonn", Casing::Title),
            ("BONN", Casing::Upper),
            ("B", Casing::SingleUpper),
            ("bonn", Casing::Lower),
            ("McB", Casing::Mixed),
            ("iPhone", Casing::Mixed),
            ("O'neill", Casing::Title),
            ("1996", Casing::None),
            ("中国", Casing::None),
        ] {
            assert_eq!(Casing::from_text(text), casing, "{text}");
        }
        assert_eq!(Casing::in_token("B", "BONN"), Casing::Upper);
        assert_eq!(Casing::in_token("B", "Bonn"), Casing::Title);
        assert!(Casing::Title.allows(Casing::SingleUpper) && !Casing::Title.allows(Casing::Upper));
    }
}
