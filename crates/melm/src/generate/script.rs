//! The writing system (script) of a text.

use melm_text::Sentence;
use unicode_script::{Script, ScriptExtension, UnicodeScript};

/// The scripts that all letters of a text have in common: the intersection of the Unicode property
/// `Script_Extensions` of the letters.
///
/// The set is empty for a text that mixes scripts. Han, Hiragana and Katakana count as one script, because Japanese
/// mixes them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Scripts(ScriptExtension);

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
        let letters = chars.filter(|c| c.is_alphabetic()).map(scripts_of_letter);
        Self(letters.fold(Script::Common.into(), ScriptExtension::intersection))
    }

    /// Returns true if the text has no letter, or only letters that occur in all scripts.
    pub(super) fn is_any(self) -> bool {
        self.0.is_common() || self.0.is_inherited()
    }

    /// Returns true if the text mixes scripts.
    pub(super) fn is_mixed(self) -> bool {
        self.0.is_empty()
    }

    /// Returns true if the letters of both texts can belong to the same script.
    pub(super) fn overlaps(self, other: Self) -> bool {
        !self.0.intersection(other.0).is_empty()
    }
}

fn scripts_of_letter(c: char) -> ScriptExtension {
    let japanese = [Script::Han, Script::Hiragana, Script::Katakana].map(ScriptExtension::from);
    let scripts = c.script_extension();
    let is_shared_by_all = scripts.is_common() || scripts.is_inherited();
    if !is_shared_by_all && japanese.iter().any(|one| !scripts.intersection(*one).is_empty()) {
        return japanese.into_iter().fold(scripts, ScriptExtension::union);
    }
    scripts
}

#[cfg(test)]
mod tests {
    use super::*;

    fn overlap(a: &str, b: &str) -> bool {
        Scripts::from_text(a).overlaps(Scripts::from_text(b))
    }

    #[test]
    fn texts_of_one_script_overlap() {
        for (a, b) in [
            ("Müller-5", "x"),
            ("Ελλάς", "ώ"),
            ("日本の", "中"),
            ("々", "中"),
            ("ベー", "の"),
            ("بّ", "ب"),
            ("\u{651}", "ب"),
        ] {
            assert!(overlap(a, b), "{a} {b}");
        }
        for (a, b) in [("Киев", "Kiev"), ("ー", "x"), ("\u{651}", "x"), ("ꨱ", "x"), ("한", "中")]
        {
            assert!(!overlap(a, b), "{a} {b}");
        }
    }

    #[test]
    fn texts_without_letters_fit_any_script_and_mixed_texts_none() {
        for text in ["12.", "", "ˈ"] {
            assert!(Scripts::from_text(text).is_any() && overlap(text, "x"), "{text}");
        }
        for text in ["BRUSSEꨱ", "aб"] {
            assert!(Scripts::from_text(text).is_mixed(), "{text}");
            assert!(!overlap(text, "x") && !overlap(text, "б") && !overlap(text, "12."), "{text}");
        }
    }
}
