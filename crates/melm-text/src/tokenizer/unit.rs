//! Grapheme clusters and their classes: the units that the tokenizer never cuts.

use unicode_segmentation::UnicodeSegmentation;

use super::script::UnspacedScript;

/// A grapheme cluster of a text: a character with its combining marks, or an emoji sequence.
#[derive(Debug, Clone, Copy)]
pub(super) struct Unit {
    /// The byte where the cluster starts.
    pub(super) start: usize,
    /// The byte after the cluster.
    pub(super) end: usize,
    /// The first character.
    pub(super) first: char,
    /// The class of the first character.
    pub(super) class: Class,
}

/// A class of characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Class {
    /// A letter, a mark, `_` or `·`.
    Letter,
    /// A digit or another numeric character.
    Digit,
    /// A letter of a script without spaces between words.
    Unspaced(UnspacedScript),
    /// White space, a control character or a zero-width space. It separates tokens and belongs to none.
    Gap,
    /// An invisible character, such as a soft hyphen or a direction mark. It belongs to a token only inside a word.
    Invisible,
    /// Punctuation and all other symbols.
    Symbol,
}

impl Unit {
    /// Returns true for letters and digits of scripts with spaces.
    pub(super) fn is_word(&self) -> bool {
        matches!(self.class, Class::Letter | Class::Digit)
    }
}

/// Splits a text into grapheme clusters.
pub(super) fn units(text: &str) -> Vec<Unit> {
    let clusters = text.grapheme_indices(true);
    let unit = |(start, cluster): (usize, &str)| {
        let first = cluster.chars().next()?;
        Some(Unit { start, end: start + cluster.len(), first, class: classify(first) })
    };
    clusters.filter_map(unit).collect()
}

fn classify(first: char) -> Class {
    if first.is_ascii_digit() {
        Class::Digit
    } else if first.is_ascii_alphabetic() || matches!(first, '_' | '·') {
        Class::Letter
    } else if first.is_whitespace() || first.is_control() || first == '\u{200b}' {
        Class::Gap
    } else if first.is_ascii() {
        Class::Symbol
    } else if is_invisible(first) {
        Class::Invisible
    } else if let Some(script) = UnspacedScript::find(first) {
        Class::Unspaced(script)
    } else if first.is_numeric() {
        Class::Digit
    } else if first.is_alphabetic() || is_mark(first) {
        Class::Letter
    } else {
        Class::Symbol
    }
}

/// Returns true for characters that belong to no token, except between letters: white space, control characters and
/// invisible characters.
pub(crate) fn is_separator(c: char) -> bool {
    matches!(classify(c), Class::Gap | Class::Invisible)
}

/// Returns true for characters that are never part of a token: white space, control characters, zero-width spaces.
pub(crate) fn is_gap(c: char) -> bool {
    classify(c) == Class::Gap
}

/// Returns true for characters of the Unicode category Cf (format) that are not part of grapheme clusters.
fn is_invisible(c: char) -> bool {
    matches!(c, '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200c}'..='\u{200f}' | '\u{202a}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}')
}

/// Returns true for a combining mark at the start of a cluster. This happens only after a line break, a control
/// character or nothing.
fn is_mark(c: char) -> bool {
    matches!(c, '\u{300}'..='\u{36f}' | '\u{483}'..='\u{489}' | '\u{591}'..='\u{5bd}' | '\u{610}'..='\u{61a}'
        | '\u{64b}'..='\u{65f}' | '\u{1ab0}'..='\u{1aff}' | '\u{1dc0}'..='\u{1dff}' | '\u{20d0}'..='\u{20ff}'
        | '\u{fe20}'..='\u{fe2f}')
}
