//! Spelling a token from pieces.

use melm_text::Token;

use super::casing::{TokenPart, copy_casing};
use crate::pieces::{Tokenizer, is_clean};

/// An entity token whose masked pieces are filled.
pub(super) struct FilledToken<'a> {
    /// The token of the source sentence.
    pub(super) source: &'a Token,
    /// The pieces of the source.
    pub(super) old_pieces: &'a [u32],
    /// The pieces after filling, as many as before.
    pub(super) new_pieces: &'a [u32],
}

/// Returns the token that the new pieces spell, or `None` if it is not valid.
///
/// A token is not valid if it is banned, contains invisible characters, has a different number of spaces from the
/// source, or contains the text of a marker or special piece. If the model is uncased, new pieces take the casing of the
/// source, and pieces that were not replaced keep the letters and accents of the source.
pub(super) fn spell_token(
    tokenizer: &Tokenizer,
    filled: &FilledToken<'_>,
    banned: &[String],
) -> Option<Token> {
    let source = filled.source.as_str();
    let text = if tokenizer.is_uncased() {
        let parts = uncased_parts(tokenizer, filled);
        let lower: String = parts.iter().map(TokenPart::text).collect();
        if banned.contains(&lower) {
            return None;
        }
        copy_casing(source, &parts)
    } else {
        tokenizer.decode(filled.new_pieces)
    };
    // A space is valid only where the source has one too: the file format of the source can then represent it.
    let n_parts = |text: &str| text.split(' ').count();
    let is_valid = text.split(' ').all(is_clean)
        && n_parts(&text) == n_parts(source)
        && !banned.contains(&text)
        && !contains_added_piece(tokenizer, &text);
    if is_valid { Token::new(&text).ok() } else { None }
}

/// Splits the filled token of an uncased model into kept and new parts. A piece that was not replaced is kept as the source
/// writes it. If it shares a character with another piece, it is spelled together with its new neighbours.
fn uncased_parts(tokenizer: &Tokenizer, filled: &FilledToken<'_>) -> Vec<TokenPart> {
    let surfaces = tokenizer.surfaces(filled.source.as_str()).unwrap_or_default();
    let kept = |at: usize| {
        let is_kept = filled.old_pieces.get(at) == filled.new_pieces.get(at);
        surfaces.get(at).copied().flatten().filter(|_| is_kept)
    };
    let mut parts = Vec::new();
    let mut start = 0;
    while start < filled.new_pieces.len() {
        if let Some(text) = kept(start) {
            parts.push(TokenPart::Kept(text.to_owned()));
            start += 1;
            continue;
        }
        let rest = start..filled.new_pieces.len();
        let end = rest.clone().find(|at| kept(*at).is_some()).unwrap_or(rest.end);
        parts.push(TokenPart::New(tokenizer.decode_composed(&filled.new_pieces[start..end])));
        start = end;
    }
    parts
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
        let source = Token::new(source).unwrap();
        let filled = FilledToken { source: &source, old_pieces: &[], new_pieces: &pieces };
        spell_token(&tokenizer, &filled, &banned).map(|token| token.to_string())
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

    /// Spells the pieces of an uncased tokenizer in the place of those of `source`.
    fn spell_uncased(source: &str, new: &[&str]) -> Option<String> {
        let vocabulary = "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nmu\nzu\nbonn\nkoln\n-\n##ller\n##rich\n##stadt\n##burg\n\
            \u{1112}\n##\u{1161}\n##\u{11ab}\n##\u{11bc}\n##\u{1100}\n##\u{116e}\n##\u{11a8}\n";
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("vocab.txt"), vocabulary).unwrap();
        let tokenizer = Tokenizer::open(folder.path()).unwrap();
        let source = Token::new(source).unwrap();
        let encoded = tokenizer.encode(&[source.as_str()]).unwrap().pieces;
        let old_pieces = &encoded[1..encoded.len() - 1];
        let new_pieces: Vec<_> = new.iter().map(|piece| tokenizer.id(piece).unwrap()).collect();
        assert_eq!(old_pieces.len(), new.len(), "{source}: {old_pieces:?}");
        let filled = FilledToken { source: &source, old_pieces, new_pieces: &new_pieces };
        spell_token(&tokenizer, &filled, &["zuburg".to_owned()]).map(|token| token.to_string())
    }

    #[test]
    fn kept_pieces_of_an_uncased_model_are_written_as_in_the_source() {
        for (source, new, expected) in [
            ("Müllerstadt", &["mu", "##ller", "##burg"][..], "Müllerburg"),
            ("MÜLLERSTADT", &["mu", "##ller", "##burg"], "MÜLLERBURG"),
            ("müllerStadt", &["mu", "##burg", "##stadt"], "müburgStadt"),
            ("Müllerstadt", &["zu", "##ller", "##stadt"], "Zullerstadt"),
            // An accent in a character of its own belongs to the letter before it.
            ("Mu\u{308}llerstadt", &["mu", "##ller", "##burg"], "Mu\u{308}llerburg"),
            ("Mu\u{308}llerstadt", &["zu", "##ller", "##stadt"], "Zullerstadt"),
            ("Zürich-Köln", &["zu", "##rich", "-", "bonn"], "Zürich-Bonn"),
            ("Zürich-Köln", &["zu", "##burg", "-", "koln"], "Züburg-Köln"),
            // The parts of a Korean syllable are pieces, and are written as one character.
            (
                "\u{d55c}\u{ad6d}",
                &["\u{1112}", "##\u{1161}", "##\u{11bc}", "##\u{1100}", "##\u{116e}", "##\u{11a8}"],
                "\u{d56d}\u{ad6d}",
            ),
        ] {
            assert_eq!(spell_uncased(source, new).as_deref(), Some(expected), "{source} {new:?}");
        }
        // A banned token is recognised in any casing.
        assert_eq!(spell_uncased("Bonnburg", &["zu", "##burg"]), None);
    }

    #[test]
    fn the_parts_of_kept_pieces_are_the_whole_token() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let tokenizer =
            Tokenizer::open(&root.join("testdata/pieces/families/bert_uncased")).unwrap();
        let text = std::fs::read_to_string(root.join("testdata/pieces/written.txt")).unwrap();
        let politics = std::fs::read_to_string(root.join("examples/politics/test.conll")).unwrap();
        let rows = politics.lines().filter_map(|line| line.split_whitespace().next());
        let mut n_accents = 0;
        for token in text.split_whitespace().chain(rows) {
            let surfaces = tokenizer.surfaces(token).unwrap();
            let n_pieces = tokenizer.encode(&[token]).unwrap().pieces.len() - 2;
            // A token without a visible character has no place for its only piece.
            assert!(surfaces.len() == n_pieces || surfaces.is_empty(), "{token}");
            if surfaces.iter().all(Option::is_some) && !surfaces.is_empty() {
                assert_eq!(surfaces.into_iter().flatten().collect::<String>(), token);
                n_accents += usize::from(!token.is_ascii());
            }
        }
        assert!(n_accents > 50, "{n_accents}");
    }
}
