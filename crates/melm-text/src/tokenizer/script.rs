//! Scripts that do not separate words by spaces.

use std::fmt;

use thiserror::Error;
use unicode_script::{Script, UnicodeScript};

/// A script that does not separate words by spaces. The tokenizer cannot find the words of such a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum UnspacedScript {
    /// Chinese characters.
    Han,
    /// Hiragana and Katakana.
    Kana,
    /// Thai.
    Thai,
    /// Lao.
    Lao,
    /// Khmer.
    Khmer,
    /// Burmese and other languages of Myanmar.
    Myanmar,
}

impl UnspacedScript {
    /// All scripts.
    pub const ALL: [Self; 6] =
        [Self::Han, Self::Kana, Self::Thai, Self::Lao, Self::Khmer, Self::Myanmar];

    /// Returns the script of a letter, or `None` if its script separates words by spaces.
    pub(super) fn find(c: char) -> Option<Self> {
        // The prolonged sound mark belongs to two scripts, so Unicode says that its script is common.
        if c == 'ー' {
            return Some(Self::Kana);
        }
        if c < '\u{e00}' || !c.is_alphabetic() {
            return None;
        }
        match c.script() {
            Script::Han => Some(Self::Han),
            Script::Hiragana | Script::Katakana => Some(Self::Kana),
            Script::Thai => Some(Self::Thai),
            Script::Lao => Some(Self::Lao),
            Script::Khmer => Some(Self::Khmer),
            Script::Myanmar => Some(Self::Myanmar),
            _ => None,
        }
    }
}

impl fmt::Display for UnspacedScript {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Han => "Chinese (Han)",
            Self::Kana => "Japanese (Kana)",
            Self::Thai => "Thai",
            Self::Lao => "Lao",
            Self::Khmer => "Khmer",
            Self::Myanmar => "Burmese (Myanmar)",
        })
    }
}

/// A text contains a script without spaces between words, and the rules do not say how to split it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("the text is in {script} script, which does not separate words by spaces")]
pub struct UnspacedText {
    /// The script.
    pub script: UnspacedScript,
    /// The byte of the text where the script first occurs.
    pub at: usize,
}
