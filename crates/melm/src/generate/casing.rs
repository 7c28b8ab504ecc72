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

/// A part of a new token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum TokenPart {
    /// The text of pieces that the model chose, in lower case.
    New(String),
    /// The text of pieces that were not replaced, as the source writes it.
    Kept(String),
}

impl TokenPart {
    pub(super) fn text(&self) -> &str {
        match self {
            Self::New(text) | Self::Kept(text) => text,
        }
    }
}

/// Joins the parts of a new token, and writes the new parts in the casing of `old`, the token that is replaced.
///
/// If `old` is upper case only, so are the new parts. Otherwise each word of the new token takes the casing of the word of
/// `old` in the same place, or of the last word: upper case if all its letters are, title case if only its first letter
/// must be, and lower case if it begins with a lower-case letter.
///
/// `paris` for `Bonn` becomes `Paris`, for `BONN` `PARIS`; `smith-jones` for `O'Neill` becomes `Smith-Jones`.
pub(super) fn copy_casing(old: &str, new: &[TokenPart]) -> String {
    let is_upper = Casing::from_text(old) == Casing::Upper;
    let old: Vec<&str> = old.split(is_separator).filter(|word| !word.is_empty()).collect();
    let letters: Vec<_> = new
        .iter()
        .flat_map(|part| part.text().chars().map(move |c| (c, matches!(part, TokenPart::New(_)))))
        .collect();
    let mut result = String::new();
    let mut n_words = 0;
    for word in letters.split_inclusive(|(c, _)| is_separator(*c)) {
        let like = old.get(n_words).or(old.last()).copied().unwrap_or_default();
        n_words += usize::from(word.iter().any(|(c, _)| !is_separator(*c)));
        let is_upper = is_upper || Casing::from_text(like) == Casing::Upper;
        let is_title = like.starts_with(char::is_uppercase);
        for (at, &(c, is_new)) in word.iter().enumerate() {
            if is_new && (is_upper || (is_title && at == 0)) {
                result.extend(c.to_uppercase());
            } else {
                result.push(c);
            }
        }
    }
    result
}

/// Returns true for the characters between the words of a token: white space, ASCII punctuation, dashes and quotes.
fn is_separator(c: char) -> bool {
    c.is_whitespace() || c.is_ascii_punctuation() || matches!(c, '\u{2010}'..='\u{2027}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_new_token_takes_the_casing_of_the_old_one() {
        for (old, new, expected) in [
            ("Bonn", "paris", "Paris"),
            ("BONN", "paris", "PARIS"),
            ("bonn", "paris", "paris"),
            ("U.S.", "uk", "UK"),
            ("B", "paris", "Paris"),
            ("McDonald", "smith", "Smith"),
            ("iPhone", "nokia", "nokia"),
            ("1996", "may", "may"),
            ("O'Neill", "smith-jones", "Smith-Jones"),
            ("Rhein-Main", "köln-bonn-berlin", "Köln-Bonn-Berlin"),
            ("USA-based", "uk-led", "UK-led"),
            ("L’Aquila", "d’orta", "D’Orta"),
            ("Al-qaida", "an-nusra", "An-nusra"),
            ("New York", "los angeles", "Los Angeles"),
            ("Bonn", "'s-hertogenbosch", "'S-Hertogenbosch"),
            ("Αθήνα", "σπάρτη", "Σπάρτη"),
            ("Bonn", "...", "..."),
            ("(Bonn)", "", ""),
        ] {
            let parts = [TokenPart::New(new.to_owned())];
            assert_eq!(copy_casing(old, &parts), expected, "{new} for {old}");
        }
    }

    #[test]
    fn kept_parts_of_a_token_are_not_changed() {
        let new = |text: &str| TokenPart::New(text.to_owned());
        let kept = |text: &str| TokenPart::Kept(text.to_owned());
        for (old, parts, expected) in [
            ("McDonald", [kept("McDon"), new("key")], "McDonkey"),
            ("Müllerstadt", [kept("Müller"), new("burg")], "Müllerburg"),
            ("ZÜRICH", [new("mu"), kept("RICH")], "MURICH"),
            // The letter ǅ is neither upper nor lower case.
            ("ǅBA", [kept("ǅ"), new("ka")], "ǅKA"),
            ("L'Aquila-est", [new("d'orta"), kept("-est")], "D'Orta-est"),
            ("Rio-grande", [kept("Rio-"), new("negro")], "Rio-negro"),
        ] {
            assert_eq!(copy_casing(old, &parts), expected, "{parts:?} for {old}");
        }
    }

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
