//! What each piece of a vocabulary may stand for in generated text.

use super::Tokenizer;

/// The place a piece can take in a word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PieceKind {
    /// Begins a word and has text.
    Initial,
    /// Goes on with a word.
    Inner,
    /// The sign of a word's beginning and nothing else: `▁` before a character that only has an inner piece.
    Bare,
    /// Part of a character: with others it may spell a word, alone it is no text.
    Partial,
    /// A special piece, a marker, or a text that no word should hold: blank, control or invisible characters.
    Unfit,
}

/// The kind of every piece, and the two special ones that masking asks for.
#[derive(Debug, Clone)]
pub struct PieceKinds {
    kinds: Vec<PieceKind>,
    /// `<mask>`.
    pub mask: u32,
    /// `<unk>`.
    pub unk: u32,
}

impl PieceKinds {
    /// Looks at every piece of the vocabulary once.
    pub fn of(tokenizer: &Tokenizer) -> Self {
        let n = u32::try_from(tokenizer.n_pieces()).expect("ids of pieces are u32");
        let mut kinds: Vec<_> = (0..n).map(|id| kind_of(tokenizer, id)).collect();
        let specials = tokenizer.specials();
        let named = [specials.bos, specials.eos, specials.pad, specials.unk, specials.mask];
        for id in named.iter().chain(tokenizer.added()) {
            kinds[*id as usize] = PieceKind::Unfit;
        }
        Self { kinds, mask: specials.mask, unk: specials.unk }
    }

    /// The kind of a piece; `Unfit` for ids that the vocabulary lacks, such as padding rows of the table.
    pub fn kind(&self, piece: u32) -> PieceKind {
        self.kinds.get(piece as usize).copied().unwrap_or(PieceKind::Unfit)
    }

    /// Whether a model may be asked to guess this piece by itself.
    pub fn is_fit(&self, piece: u32) -> bool {
        matches!(self.kind(piece), PieceKind::Initial | PieceKind::Inner)
    }
}

fn kind_of(tokenizer: &Tokenizer, id: u32) -> PieceKind {
    let is_initial = tokenizer.is_word_initial(id);
    match tokenizer.text(id) {
        None => PieceKind::Partial,
        Some(text) if text.is_empty() && is_initial => PieceKind::Bare,
        Some(text) if !is_clean(&text) => PieceKind::Unfit,
        Some(_) if is_initial => PieceKind::Initial,
        Some(_) => PieceKind::Inner,
    }
}

/// Whether a text can be part of a generated token: something, and nothing that a reader would not see.
pub(crate) fn is_clean(text: &str) -> bool {
    let is_invisible = |c: char| {
        c.is_whitespace()
            || c.is_control()
            || c == char::REPLACEMENT_CHARACTER
            // Soft hyphen, zero-width and direction signs, word joiners, variation selectors, the byte-order mark.
            || matches!(c, '\u{ad}' | '\u{61c}' | '\u{180b}'..='\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}'
                | '\u{2060}'..='\u{206f}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{fff0}'..='\u{fffb}' | '\u{e0000}'..='\u{e0fff}')
    };
    !text.is_empty() && !text.contains(is_invisible)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_reader_would_not_see_is_not_clean() {
        for text in ["", " ", "a b", "a\u{200b}", "\u{feff}", "x\u{fffd}", "\u{7}", "\u{a0}"] {
            assert!(!is_clean(text), "{text:?}");
        }
        for text in ["a", "é", "中国", "...", "O'Neill", "\u{301}"] {
            assert!(is_clean(text), "{text:?}");
        }
    }
}
