//! Tests the invariants of `Encoded` for any text.

use proptest::prelude::*;

use crate::MINI;

/// Generates ordinary and unusual tokens.
fn token() -> impl Strategy<Value = String> {
    prop_oneof![
        3 => any::<String>(),
        3 => "[a-zäöüñ.,<>/_-]{0,12}",
        1 => "[\u{200b}-\u{200f}\u{feff}\u{ad}\u{301}\u{2581} ]{0,3}",
        1 => prop::sample::select(vec!["<mask>", "</s>", "<unk>", "<s>"]).prop_map(str::to_owned),
    ]
}

proptest! {
    #[test]
    fn ranges_are_contiguous_non_empty_and_cover_all_pieces(tokens in prop::collection::vec(token(), 0..8)) {
        let encoded = MINI.encode(&tokens).unwrap();
        let specials = MINI.specials();
        prop_assert_eq!(encoded.tokens.len(), tokens.len());
        let mut end = 1;
        for word in &encoded.tokens {
            prop_assert_eq!(word.start, end);
            prop_assert!(word.end > word.start);
            end = word.end;
        }
        prop_assert_eq!(end as usize + 1, encoded.pieces.len());
        prop_assert_eq!(encoded.pieces[0], specials.bos);
        prop_assert_eq!(encoded.pieces[encoded.pieces.len() - 1], specials.eos);
        let inside = &encoded.pieces[1..encoded.pieces.len() - 1];
        for placed in [specials.bos, specials.eos, specials.pad, specials.mask] {
            prop_assert!(!inside.contains(&placed));
        }
    }

    #[test]
    fn the_pieces_of_a_token_do_not_depend_on_its_neighbours(left in token(), right in token()) {
        let pieces = |tokens: &[&str]| {
            let encoded = MINI.encode(tokens).unwrap();
            encoded.pieces[1..encoded.pieces.len() - 1].to_vec()
        };
        let together = pieces(&[&left, &right]);
        prop_assert_eq!(together, [pieces(&[&left]), pieces(&[&right])].concat());
    }
}
