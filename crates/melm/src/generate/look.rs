//! How a text looks: its casing, and the script of its letters.

/// The casing of a piece.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Casing {
    /// No letter has a case.
    None,
    /// All small.
    Small,
    /// One letter with a case, a capital: begins `Bonn` as well as `BONN`.
    Capital,
    /// A capital, then small letters.
    Title,
    /// Capitals only, more than one.
    Capitals,
    /// Anything else.
    Mixed,
}

impl Casing {
    pub(super) fn of(text: &str) -> Self {
        let mut cased = text.chars().filter(|c| c.is_uppercase() || c.is_lowercase());
        let Some(first) = cased.next() else { return Self::None };
        let (n_capital, n_small) = cased.fold((0, 0), |(capital, small), c| {
            if c.is_uppercase() { (capital + 1, small) } else { (capital, small + 1) }
        });
        match (first.is_uppercase(), n_capital, n_small) {
            (false, 0, _) => Self::Small,
            (true, 0, 0) => Self::Capital,
            (true, 0, _) => Self::Title,
            (true, _, 0) => Self::Capitals,
            _ => Self::Mixed,
        }
    }

    /// The casing of a piece in its token: a lone capital is read by what stands around it.
    pub(super) fn within(piece: &str, token: &str) -> Self {
        match Self::of(piece) {
            Self::Capital if Self::of(token) == Self::Capitals => Self::Capitals,
            Self::Capital => Self::Title,
            casing => casing,
        }
    }

    /// Whether a piece of casing `other` can stand where one of this casing stood.
    pub(super) fn admits(self, other: Self) -> bool {
        match self {
            Self::Title | Self::Capitals => other == self || other == Self::Capital,
            Self::Mixed => other != Self::None,
            Self::None | Self::Small | Self::Capital => other == self,
        }
    }
}

/// A script, or several that one language mixes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Script(u8);

impl Script {
    /// All scripts without a block below.
    const RARE: Self = Self(u8::MAX);
}

/// The scripts of a text's letters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Scripts {
    /// No letter.
    None,
    /// All of one script.
    One(Script),
    /// Of several.
    Several,
}

impl Scripts {
    pub(super) fn of(text: &str) -> Self {
        text.chars().filter_map(script).fold(Self::None, |scripts, script| match scripts {
            Self::None => Self::One(script),
            Self::One(other) if other == script => scripts,
            _ => Self::Several,
        })
    }
}

/// First and last character of the blocks of a script (Unicode 16, `Blocks.txt`); the number says which script.
const BLOCKS: [(char, char, u8); 40] = [
    ('A', 'Z', 0),
    ('a', 'z', 0),
    ('\u{aa}', '\u{ba}', 0),
    ('\u{c0}', '\u{24f}', 0),
    ('\u{250}', '\u{2ff}', 0),
    ('\u{370}', '\u{3ff}', 1),
    ('\u{400}', '\u{52f}', 2),
    ('\u{531}', '\u{58f}', 3),
    ('\u{591}', '\u{5f4}', 4),
    ('\u{600}', '\u{6ff}', 5),
    ('\u{700}', '\u{74f}', 6),
    ('\u{750}', '\u{77f}', 5),
    ('\u{780}', '\u{7bf}', 7),
    ('\u{8a0}', '\u{8ff}', 5),
    ('\u{900}', '\u{97f}', 8),
    ('\u{980}', '\u{9ff}', 9),
    ('\u{a00}', '\u{a7f}', 10),
    ('\u{a80}', '\u{aff}', 11),
    ('\u{b00}', '\u{b7f}', 12),
    ('\u{b80}', '\u{bff}', 13),
    ('\u{c00}', '\u{c7f}', 14),
    ('\u{c80}', '\u{cff}', 15),
    ('\u{d00}', '\u{d7f}', 16),
    ('\u{d80}', '\u{dff}', 17),
    ('\u{e00}', '\u{e7f}', 18),
    ('\u{e80}', '\u{eff}', 19),
    ('\u{f00}', '\u{fff}', 20),
    ('\u{1000}', '\u{109f}', 21),
    ('\u{10a0}', '\u{10ff}', 22),
    ('\u{1100}', '\u{11ff}', 23),
    ('\u{1200}', '\u{139f}', 24),
    ('\u{1780}', '\u{17ff}', 25),
    ('\u{1e00}', '\u{1eff}', 0),
    ('\u{1f00}', '\u{1fff}', 1),
    // Japanese mixes kana with Han characters.
    ('\u{3040}', '\u{30ff}', 26),
    ('\u{3400}', '\u{9fff}', 26),
    ('\u{ac00}', '\u{d7af}', 23),
    ('\u{f900}', '\u{faff}', 26),
    ('\u{fb50}', '\u{fdff}', 5),
    ('\u{fe70}', '\u{fefc}', 5),
];

fn script(c: char) -> Option<Script> {
    if !c.is_alphabetic() {
        return None;
    }
    let at = BLOCKS.partition_point(|(_, last, _)| *last < c);
    let block = BLOCKS.get(at).filter(|(first, _, _)| *first <= c);
    Some(block.map_or(Script::RARE, |(_, _, script)| Script(*script)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn casing_is_read_from_the_letters_that_have_one() {
        for (text, casing) in [
            ("Bonn", Casing::Title),
            ("BONN", Casing::Capitals),
            ("B", Casing::Capital),
            ("bonn", Casing::Small),
            ("McB", Casing::Mixed),
            ("iPhone", Casing::Mixed),
            ("O'neill", Casing::Title),
            ("1996", Casing::None),
            ("中国", Casing::None),
        ] {
            assert_eq!(Casing::of(text), casing, "{text}");
        }
        assert_eq!(Casing::within("B", "BONN"), Casing::Capitals);
        assert_eq!(Casing::within("B", "Bonn"), Casing::Title);
        assert!(Casing::Title.admits(Casing::Capital) && !Casing::Title.admits(Casing::Capitals));
    }

    #[test]
    fn scripts_are_those_of_the_letters() {
        assert!(BLOCKS.windows(2).all(|pair| pair[0].1 < pair[1].0));
        let of = Scripts::of;
        assert_eq!(of("Müller-5"), of("x"));
        assert_eq!(of("Ελλάς"), of("ώ"));
        assert_eq!(of("日本の"), of("中"));
        assert_ne!(of("Киев"), of("Kiev"));
        assert_eq!((of("BRUSSEꨱ"), of("aб")), (Scripts::Several, Scripts::Several));
        assert_eq!(of("12."), Scripts::None);
    }
}
