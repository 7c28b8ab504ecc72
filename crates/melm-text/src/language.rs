//! The languages of a corpus that was made from files in several languages.

use std::ops::Range;

use crate::scheme::Scheme;

/// A language of a corpus: an index into [`crate::Corpus::languages`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Language(u16);

impl Language {
    /// The language with this index.
    ///
    /// # Panics
    /// If `index` is 65,536 or more.
    pub fn from_index(index: usize) -> Self {
        Self(u16::try_from(index).expect("a corpus has at most 2^16 languages"))
    }

    /// The index, from 0.
    pub fn index(self) -> usize {
        self.0.into()
    }
}

/// The sentences of one language in a corpus of several.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LanguagePart {
    /// The language code, such as `en`.
    pub code: Box<str>,
    /// The tag scheme of the file of this language.
    pub scheme: Scheme,
    /// The indices of the sentences of this language in the corpus.
    pub sentences: Range<usize>,
}

/// Returns true if `text` can be a language code. Codes become part of file names and markers, so
/// only letters, digits, `-` and `_` are allowed.
///
/// ```
/// use melm_text::is_language_code;
/// assert!(is_language_code("en") && is_language_code("zh-Hant") && is_language_code("pt_BR"));
/// assert!(!is_language_code("") && !is_language_code("../en") && !is_language_code("-en"));
/// ```
pub fn is_language_code(text: &str) -> bool {
    let is_inner = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    text.starts_with(|c: char| c.is_ascii_alphabetic())
        && text.len() <= 32
        && text.chars().all(is_inner)
}
