//! The role that each piece of a vocabulary can have in generated text.

use super::Tokenizer;

/// The position that a piece can have in a word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PieceKind {
    /// Begins a word and has text.
    Initial,
    /// Continues a word.
    Inner,
    /// The word-start sign `▁` alone. It comes before a character that has no piece of its own at the start of a
    /// word.
    Bare,
    /// Some of the bytes of a character. Only together with other pieces do they form text.
    Partial,
    /// A special piece, a marker, a piece with white space, control or invisible characters, or a piece that no text
    /// contains, such as `[unused1]`.
    Unfit,
}

/// The kind of every piece of a vocabulary, and the special pieces that masking needs.
#[derive(Debug, Clone)]
pub struct PieceKinds {
    kinds: Vec<PieceKind>,
    /// The id of `<mask>`.
    pub mask: u32,
    /// The id of `<unk>`.
    pub unk: u32,
}

impl PieceKinds {
    /// Classifies every piece of a tokenizer's vocabulary, markers included.
    pub fn new(tokenizer: &Tokenizer) -> Self {
        let n = u32::try_from(tokenizer.n_pieces()).expect("ids of pieces are u32");
        let mut kinds: Vec<_> = (0..n).map(|id| classify(tokenizer, id)).collect();
        let specials = tokenizer.specials();
        let named = [specials.bos, specials.eos, specials.pad, specials.unk, specials.mask];
        for id in named.iter().chain(tokenizer.added()) {
            kinds[*id as usize] = PieceKind::Unfit;
        }
        Self { kinds, mask: specials.mask, unk: specials.unk }
    }

    /// Returns the kind of a piece. Ids beyond the vocabulary, such as padding rows of the model's table, are `Unfit`.
    pub fn kind(&self, piece: u32) -> PieceKind {
        self.kinds.get(piece as usize).copied().unwrap_or(PieceKind::Unfit)
    }

    /// Returns true if the piece can be masked and predicted by itself.
    pub fn is_predictable(&self, piece: u32) -> bool {
        matches!(self.kind(piece), PieceKind::Initial | PieceKind::Inner)
    }
}

fn classify(tokenizer: &Tokenizer, id: u32) -> PieceKind {
    let is_initial = tokenizer.is_word_initial(id);
    match tokenizer.text(id) {
        None => PieceKind::Partial,
        Some(text) if text.is_empty() && is_initial => PieceKind::Bare,
        Some(text) if !is_clean(&text) || !tokenizer.is_reachable(id) => PieceKind::Unfit,
        Some(_) if is_initial => PieceKind::Initial,
        Some(_) => PieceKind::Inner,
    }
}

/// Returns true if a text can be part of a generated token: not empty, and without white space, control or invisible
/// characters.
pub(crate) fn is_clean(text: &str) -> bool {
    let is_invisible = |c: char| {
        c.is_whitespace()
            || c.is_control()
            || c == char::REPLACEMENT_CHARACTER
            // Soft hyphen, zero-width characters, direction marks, word joiners, variation selectors, byte-order mark.
            || matches!(c, '\u{ad}' | '\u{61c}' | '\u{180b}'..='\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}'
                | '\u{2060}'..='\u{206f}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{fff0}'..='\u{fffb}' | '\u{e0000}'..='\u{e0fff}')
    };
    !text.is_empty() && !text.contains(is_invisible)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn empty_blank_and_invisible_texts_are_not_clean() {
        for text in ["", " ", "a b", "a\u{200b}", "\u{feff}", "x\u{fffd}", "\u{7}", "\u{a0}"] {
            assert!(!is_clean(text), "{text:?}");
        }
        for text in ["a", "é", "中国", "...", "O'Neill", "\u{301}"] {
            assert!(is_clean(text), "{text:?}");
        }
    }
}
