//! The script of a text.

use melm_text::Sentence;
use unicode_script::{Script, UnicodeScript};

/// The scripts of the letters of a text. Han stands for all scripts of Japanese, which mixes kana with Han characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Scripts {
    /// The text has no letter that belongs to a script.
    None,
    /// All letters are of one script.
    One(Script),
    /// The letters are of several scripts.
    Several,
}

impl Scripts {
    /// Reads the scripts of the letters of a text; other characters are ignored.
    pub(super) fn from_text(text: &str) -> Self {
        Self::from_chars(text.chars())
    }

    /// Reads the scripts of the letters of all tokens of a sentence.
    pub(super) fn from_sentence(sentence: &Sentence) -> Self {
        Self::from_chars(sentence.tokens().iter().flat_map(|token| token.as_str().chars()))
    }

    fn from_chars(chars: impl Iterator<Item = char>) -> Self {
        chars.filter_map(script_of_letter).fold(Self::None, |scripts, script| match scripts {
            Self::None => Self::One(script),
            Self::One(other) if other == script => scripts,
            Self::One(_) | Self::Several => Self::Several,
        })
    }

    /// Returns the script if there is exactly one.
    pub(super) fn single(self) -> Option<Script> {
        match self {
            Self::One(script) => Some(script),
            Self::None | Self::Several => None,
        }
    }

    /// Returns true if no letter of the text is of another script than `script`.
    pub(super) fn allowed_with(self, script: Script) -> bool {
        match self {
            Self::None => true,
            Self::One(other) => other == script,
            Self::Several => false,
        }
    }
}

/// Returns the script of a letter. `None` for other characters, and for letters that several scripts share, such as
/// modifier letters and Arabic vowel signs.
fn script_of_letter(c: char) -> Option<Script> {
    if !c.is_alphabetic() {
        return None;
    }
    match c.script() {
        Script::Han | Script::Hiragana | Script::Katakana => Some(Script::Han),
        Script::Common | Script::Inherited => {
            // The prolonged sound mark `ー` is shared, but only by the two kana scripts.
            let shared_by = c.script_extension();
            let is_kana = !shared_by.is_common() && shared_by.contains_script(Script::Katakana);
            is_kana.then_some(Script::Han)
        }
        script => Some(script),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scripts_are_read_from_the_letters() {
        let of = Scripts::from_text;
        assert_eq!(of("Müller-5"), Scripts::One(Script::Latin));
        assert_eq!(of("Ελλάς"), of("ώ"));
        assert_eq!(of("日本の"), of("中"));
        assert_eq!(of("々"), of("中"));
        assert_eq!(of("ベー"), of("ー"));
        assert_eq!(of("ー"), of("中"));
        assert_ne!(of("Киев"), of("Kiev"));
        assert_eq!((of("BRUSSEꨱ"), of("aб")), (Scripts::Several, Scripts::Several));
        assert_eq!((of("12."), of("ˈ")), (Scripts::None, Scripts::None));
    }
}
