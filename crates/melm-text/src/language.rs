//! Languages of a corpus, where it is made of files in several.

use std::ops::Range;

use crate::scheme::Scheme;

/// A language of a corpus: its place among [`crate::Corpus::languages`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Language(u16);

impl Language {
    /// The language at a place, from 0.
    ///
    /// # Panics
    /// If a corpus had more than 65,536 languages.
    pub fn from_index(index: usize) -> Self {
        Self(u16::try_from(index).expect("a corpus has at most 2^16 languages"))
    }

    /// Its place, from 0.
    pub fn index(self) -> usize {
        self.0.into()
    }
}

/// What a corpus of several languages has in one of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LanguagePart {
    /// The code, such as `en`.
    pub code: Box<str>,
    /// The scheme that its own file is in.
    pub scheme: Scheme,
    /// Its sentences in the corpus.
    pub sentences: Range<usize>,
}

/// Whether `text` can be the code of a language: it becomes part of names of files and of markers.
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
