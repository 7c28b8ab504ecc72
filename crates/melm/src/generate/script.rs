//! The script of a text.

use melm_text::Sentence;

/// A script, or a group of scripts that one language mixes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct ScriptGroup(u8);

impl ScriptGroup {
    /// All scripts without a block in [`BLOCKS`].
    const RARE: Self = Self(u8::MAX);
}

/// The scripts of a text's letters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Scripts {
    /// The text has no letter.
    None,
    /// All letters are of one group.
    One(ScriptGroup),
    /// The letters are of several groups.
    Several,
}

impl Scripts {
    /// Reads the scripts of the letters of a text; other characters are ignored.
    pub(super) fn from_text(text: &str) -> Self {
        Self::from_chars(text.chars())
    }

    /// Reads the scripts of all tokens of a sentence.
    pub(super) fn from_sentence(sentence: &Sentence) -> Self {
        Self::from_chars(sentence.tokens().iter().flat_map(|token| token.as_str().chars()))
    }

    fn from_chars(chars: impl Iterator<Item = char>) -> Self {
        chars.filter_map(script_group).fold(Self::None, |scripts, script| match scripts {
            Self::None => Self::One(script),
            Self::One(other) if other == script => scripts,
            _ => Self::Several,
        })
    }

    /// Returns the group if there is exactly one.
    pub(super) fn single(self) -> Option<ScriptGroup> {
        match self {
            Self::One(script) => Some(script),
            Self::None | Self::Several => None,
        }
    }

    /// Returns true if a text with these scripts has no letter of another group than `script`.
    pub(super) fn allowed_with(self, script: ScriptGroup) -> bool {
        match self {
            Self::None => true,
            Self::One(other) => other == script,
            Self::Several => false,
        }
    }
}

/// First and last character of the blocks of a script (Unicode 16, `Blocks.txt`); the number stands for the group.
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

/// Returns the group of a letter, or `None` for any other character.
fn script_group(c: char) -> Option<ScriptGroup> {
    if !c.is_alphabetic() {
        return None;
    }
    let at = BLOCKS.partition_point(|(_, last, _)| *last < c);
    let block = BLOCKS.get(at).filter(|(first, _, _)| *first <= c);
    Some(block.map_or(ScriptGroup::RARE, |(_, _, number)| ScriptGroup(*number)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scripts_are_read_from_the_letters() {
        assert!(BLOCKS.windows(2).all(|pair| pair[0].1 < pair[1].0));
        let of = Scripts::from_text;
        assert_eq!(of("Müller-5"), of("x"));
        assert_eq!(of("Ελλάς"), of("ώ"));
        assert_eq!(of("日本の"), of("中"));
        assert_ne!(of("Киев"), of("Kiev"));
        assert_eq!((of("BRUSSEꨱ"), of("aб")), (Scripts::Several, Scripts::Several));
        assert_eq!(of("12."), Scripts::None);
    }
}
