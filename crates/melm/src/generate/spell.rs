//! From pieces back to a token, or not at all.

use melm_text::Token;

use crate::pieces::{Tokenizer, is_clean};

/// Spells tokens, and refuses those that could be taken for something else.
pub(super) struct Speller<'a> {
    tokenizer: &'a Tokenizer,
    banned: &'a [String],
}

impl<'a> Speller<'a> {
    pub(super) fn new(tokenizer: &'a Tokenizer, banned: &'a [String]) -> Self {
        Self { tokenizer, banned }
    }

    /// The token that `pieces` spell in the place of `source`, if it is sound.
    pub(super) fn spell(&self, pieces: &[u32], source: &Token) -> Option<Token> {
        let text = self.tokenizer.decode(pieces);
        // A space can only be where the source has one, and then its file can hold it.
        let n_parts = |text: &str| text.split(' ').count();
        let is_sound = text.split(' ').all(is_clean)
            && n_parts(&text) == n_parts(source.as_str())
            && !self.banned.contains(&text)
            && !self.holds_added(&text);
        if is_sound { Token::new(&text).ok() } else { None }
    }

    /// Whether ordinary pieces happen to spell a marker or a special piece.
    fn holds_added(&self, text: &str) -> bool {
        let mut added = self.tokenizer.added().iter();
        added.any(|id| text.contains(self.tokenizer.piece(*id)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    fn spelled(parts: &[&str], source: &str) -> Option<String> {
        let testdata =
            Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/pieces/byte_level");
        let mut tokenizer = Tokenizer::open(&testdata).unwrap();
        tokenizer.add_markers(&["<B-X>"]).unwrap();
        let pieces: Vec<_> = parts.iter().map(|piece| tokenizer.id(piece).unwrap()).collect();
        let banned = ["the".to_owned()];
        let token = Speller::new(&tokenizer, &banned).spell(&pieces, &Token::new(source).unwrap());
        token.map(|token| token.to_string())
    }

    #[test]
    fn sound_tokens_are_spelled_and_others_refused() {
        assert_eq!(spelled(&["ĠP", "arty"], "Bonn").unwrap(), "Party");
        assert_eq!(spelled(&["ĠP", "arty", "Ġof"], "New York").unwrap(), "Party of");
        for (pieces, source) in [
            (&["ĠP", "arty", "Ġof"][..], "Bonn"),
            (&["ĠP", "arty", "Ġof"], "New\u{a0}York"),
            (&["Ġthe"], "Bonn"),
            (&["ĠP", "<", "B", "-", "X", ">"], "Bonn"),
            (&["ĠP", "Ã"], "Bonn"),
            (&["Ġ"], "Bonn"),
        ] {
            assert_eq!(spelled(pieces, source), None, "{pieces:?}");
        }
    }
}
