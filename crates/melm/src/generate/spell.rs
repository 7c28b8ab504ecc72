//! Spelling a token from pieces.

use melm_text::Token;

use super::casing::copy_casing;
use crate::pieces::{Tokenizer, is_clean};

/// Returns the token that `pieces` spell as a replacement of `source`, or `None` if it is not valid.
///
/// A token is not valid if it is banned, contains invisible characters, has a different number of spaces from the
/// source, or contains the text of a marker or special piece. If the model is uncased, the token takes the casing of
/// the source.
pub(super) fn spell_token(
    tokenizer: &Tokenizer,
    pieces: &[u32],
    source: &Token,
    banned: &[String],
) -> Option<Token> {
    let text = tokenizer.decode(pieces);
    // A space is valid only where the source has one too: the file format of the source can then represent it.
    let n_parts = |text: &str| text.split(' ').count();
    let is_valid = text.split(' ').all(is_clean)
        && n_parts(&text) == n_parts(source.as_str())
        && !banned.contains(&text)
        && !contains_added_piece(tokenizer, &text);
    if !is_valid {
        return None;
    }
    let text = if tokenizer.is_uncased() { copy_casing(source.as_str(), &text) } else { text };
    if banned.contains(&text) { None } else { Token::new(&text).ok() }
}

/// Returns true if `text` contains the text of a marker or special piece. Ordinary pieces can spell such a text.
fn contains_added_piece(tokenizer: &Tokenizer, text: &str) -> bool {
    tokenizer.added().iter().any(|id| text.contains(tokenizer.piece(*id)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    fn spell(pieces: &[&str], source: &str) -> Option<String> {
        let testdata =
            Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/pieces/byte_level");
        let mut tokenizer = Tokenizer::open(&testdata).unwrap();
        tokenizer.add_markers(&["<B-X>"]).unwrap();
        let pieces: Vec<_> = pieces.iter().map(|piece| tokenizer.id(piece).unwrap()).collect();
        let banned = ["the".to_owned()];
        let token = spell_token(&tokenizer, &pieces, &Token::new(source).unwrap(), &banned);
        token.map(|token| token.to_string())
    }

    #[test]
    fn valid_tokens_are_spelled_and_others_rejected() {
        assert_eq!(spell(&["ĠP", "arty"], "Bonn").unwrap(), "Party");
        assert_eq!(spell(&["ĠP", "arty", "Ġof"], "New York").unwrap(), "Party of");
        for (pieces, source) in [
            (&["ĠP", "arty", "Ġof"][..], "Bonn"),
            (&["ĠP", "arty", "Ġof"], "New\u{a0}York"),
            (&["Ġthe"], "Bonn"),
            (&["ĠP", "<", "B", "-", "X", ">"], "Bonn"),
            (&["ĠP", "Ã"], "Bonn"),
            (&["Ġ"], "Bonn"),
        ] {
            assert_eq!(spell(pieces, source), None, "{pieces:?}");
        }
    }
}
