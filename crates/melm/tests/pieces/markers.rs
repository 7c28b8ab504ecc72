//! Tests that special pieces and markers never come from the text of a corpus.

use melm::Error;
use melm::pieces::Tokenizer;

use crate::{MINI, mini, testdata};

/// Returns the tokenizer of `mini` and two tiny ones, each with markers.
fn tokenizers() -> [Tokenizer; 3] {
    let mut all = [
        mini(),
        Tokenizer::open(&testdata("unigram")).unwrap(),
        Tokenizer::open(&testdata("byte_level")).unwrap(),
    ];
    for tokenizer in &mut all {
        tokenizer.add_markers(&["<B-PER>", "<I-PER>"]).unwrap();
    }
    all
}

#[test]
fn markers_get_the_ids_after_the_vocabulary() {
    let mut tokenizer = mini();
    assert_eq!(tokenizer.n_pieces(), 50_960);
    assert_eq!(tokenizer.add_markers(&["<B-PER>", "<I-PER>"]).unwrap(), [50_960, 50_961]);
    assert_eq!(tokenizer.add_markers(&["<I-PER>", "<B-LOC>"]).unwrap(), [50_961, 50_962]);
    assert_eq!(tokenizer.n_pieces(), 50_963);
    assert_eq!(tokenizer.piece(50_962), "<B-LOC>");
    assert_eq!(tokenizer.id("<B-LOC>"), Some(50_962));
    assert!(!tokenizer.is_word_initial(50_962));
}

#[test]
fn a_marker_that_is_already_a_piece_is_refused() {
    for taken in ["<mask>", "<s>", "", "\u{2581}de"] {
        assert!(MINI.id(taken).is_some() || taken.is_empty());
        let error = mini().add_markers(&[taken]).unwrap_err();
        assert!(matches!(error, Error::MarkerTaken { ref marker } if marker == taken), "{error}");
    }
}

#[test]
fn the_text_of_a_special_piece_or_marker_becomes_ordinary_pieces() {
    for tokenizer in tokenizers() {
        let specials = tokenizer.specials();
        let placed = [specials.bos, specials.eos, specials.pad, specials.mask];
        for text in [
            "<mask>",
            "<s>",
            "</s>",
            "<pad>",
            "<unk>",
            "<B-PER>",
            "x<mask>y",
            "<s><s>",
            "\u{2581}<mask>",
        ] {
            let encoded = tokenizer.encode(&[text]).unwrap();
            let inside = &encoded.pieces[1..encoded.pieces.len() - 1];
            assert_eq!(encoded.tokens[0], 1..u32::try_from(inside.len() + 1).unwrap());
            assert!(inside.len() > 1, "{text}: {inside:?}");
            for id in inside {
                assert!(!placed.contains(id), "{text} became {}", tokenizer.piece(*id));
                assert!(!tokenizer.piece(*id).starts_with("<B-PER"), "{text} became a marker");
            }
        }
        let spelled = tokenizer.encode(&["<unk>"]).unwrap();
        // The tiny unigram tokenizer has no piece `<`, so `<unk>` is correct in that case.
        let lacks_characters = tokenizer.id("<").is_none();
        assert!(lacks_characters || !spelled.pieces.contains(&specials.unk));
    }
}

#[test]
fn special_pieces_are_those_of_the_file() {
    let specials = MINI.specials();
    let ids = [specials.bos, specials.pad, specials.eos, specials.unk, specials.mask];
    assert_eq!(ids, [0, 1, 2, 3, 50_959]);
    assert_eq!(ids.map(|id| MINI.piece(id)), ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]);
}

#[test]
fn pieces_spell_their_token() {
    let byte_level = Tokenizer::open(&testdata("byte_level")).unwrap();
    for tokenizer in [&*MINI, &byte_level] {
        for token in
            ["Bundeskanzler", "Müller-Lüdenscheidt", "Sabiñánigo", "1,234.56", "'s-Hertogenbosch"]
        {
            let encoded = tokenizer.encode(&[token]).unwrap();
            let word = encoded.tokens[0].start as usize..encoded.tokens[0].end as usize;
            let pieces = &encoded.pieces[word];
            assert_eq!(tokenizer.decode(pieces), token);
            assert!(tokenizer.is_word_initial(pieces[0]), "{token}");
            assert!(pieces[1..].iter().all(|&piece| !tokenizer.is_word_initial(piece)), "{token}");
        }
    }
}

#[test]
fn a_saved_tokenizer_opens_with_its_markers() {
    for mut tokenizer in tokenizers() {
        let dir = tempfile::tempdir().unwrap();
        tokenizer.save(dir.path()).unwrap();
        let mut again = Tokenizer::open(dir.path()).unwrap();
        assert_eq!(again.n_pieces(), tokenizer.n_pieces());
        let markers = ["<I-PER>", "<B-PER>"];
        assert_eq!(again.add_markers(&markers).unwrap(), tokenizer.add_markers(&markers).unwrap());
        assert_eq!(again.n_pieces(), tokenizer.n_pieces());
        for text in ["<B-PER>", "Köln", "\u{200b}"] {
            assert_eq!(again.encode(&[text]).unwrap(), tokenizer.encode(&[text]).unwrap());
        }
    }
}
