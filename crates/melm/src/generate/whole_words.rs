//! Windows in which each masked token has a single piece.

use crate::linearize::{EntityToken, Linearized};
use crate::mask::Masked;

/// Replaces all pieces of each masked token by one `<mask>`. Returns the shorter window, with `<mask>` as the original
/// piece of these tokens.
pub(super) fn collapse(source: &Linearized, masked: &Masked, mask: u32) -> (Linearized, Masked) {
    let mut pieces = Vec::with_capacity(source.pieces.len());
    let mut piece_ranges = Vec::with_capacity(source.piece_ranges.len());
    let mut positions = Vec::new();
    let mut copied = 0;
    for range in &source.piece_ranges {
        // Markers before the token.
        pieces.extend(&source.pieces[copied..range.start]);
        let start = pieces.len();
        if masked.positions.iter().any(|position| range.contains(position)) {
            positions.push(start);
            pieces.push(mask);
        } else {
            pieces.extend(&source.pieces[range.clone()]);
        }
        piece_ranges.push(start..pieces.len());
        copied = range.end;
    }
    pieces.extend(&source.pieces[copied..]);
    let range_of = |entity: &EntityToken| piece_ranges[entity.token - source.tokens.start].clone();
    let entities = source.entities.iter();
    let entities =
        entities.map(|entity| EntityToken { piece_range: range_of(entity), ..*entity }).collect();
    let originals = vec![mask; positions.len()];
    let masked = Masked { pieces: pieces.clone(), positions, originals };
    let window =
        Linearized { pieces, piece_ranges, entities, tokens: source.tokens.clone(), ..*source };
    (window, masked)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn masked_tokens_become_one_piece_and_the_rest_moves() {
        // <s> 10 [m] 20 21 22 [m] [m] 30 [m] 40 41 </s>, the tokens of a mention between markers.
        let entity = |token, piece_range| EntityToken { token, mention: 0, piece_range };
        let source = Linearized {
            sentence: 3,
            window: 1,
            pieces: vec![0, 10, 9, 20, 21, 22, 9, 9, 30, 9, 40, 41, 2],
            tokens: 5..9,
            piece_ranges: vec![1..2, 3..6, 8..9, 10..12],
            entities: vec![entity(6, 3..6), entity(7, 8..9)],
        };
        // A bare `▁` is never masked by itself, but it is removed with its token.
        let masked = Masked {
            pieces: vec![0, 10, 9, 20, 7, 7, 9, 9, 30, 9, 40, 41, 2],
            positions: vec![4, 5],
            originals: vec![21, 22],
        };
        let (window, masked) = collapse(&source, &masked, 7);
        let expected = vec![0, 10, 9, 7, 9, 9, 30, 9, 40, 41, 2];
        assert_eq!(masked, Masked { pieces: expected, positions: vec![3], originals: vec![7] });
        assert_eq!(window.pieces, masked.pieces);
        assert_eq!(window.piece_ranges, [1..2, 3..4, 6..7, 8..10]);
        assert_eq!(window.entities, [entity(6, 3..4), entity(7, 6..7)]);
        assert_eq!((window.sentence, window.window, window.tokens), (3, 1, 5..9));
    }
}
