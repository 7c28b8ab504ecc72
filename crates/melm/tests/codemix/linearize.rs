//! Language markers: each comes before a tag marker and names the language of the mention.

use std::path::Path;

use melm::codemix::{Codemix, CodemixSettings, DonorChoice, VectorKind};
use melm::linearize::linearize;
use melm::markers::Markers;
use melm::pieces::Tokenizer;
use melm::random::Seed;
use melm::rate::Rate;
use melm_text::Corpus;

use crate::support::{read, round};

fn tokenizer() -> Tokenizer {
    Tokenizer::open(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/pieces/unigram"))
        .unwrap()
}

fn pieces(corpus: &Corpus) -> Vec<String> {
    let mut tokenizer = tokenizer();
    let markers = Markers::from_corpora(&[corpus], &mut tokenizer).unwrap();
    let linearized = linearize(corpus, &tokenizer, Some(&markers), 512).unwrap();
    for window in &linearized.windows {
        let plain = tokenizer.encode(corpus.sentences()[window.sentence].tokens()).unwrap();
        for (place, range) in window.piece_ranges.iter().zip(&plain.tokens) {
            let expected = &plain.pieces[range.start as usize..range.end as usize];
            assert_eq!(&window.pieces[place.clone()], expected);
        }
        assert_eq!(window.piece_ranges.len(), plain.tokens.len());
        assert_eq!(window.pieces[0], plain.pieces[0]);
        assert_eq!(window.pieces.last(), plain.pieces.last());
        // Each entity token has two tag markers and one language marker.
        assert_eq!(window.pieces.len(), plain.pieces.len() + 3 * window.entities.len());
    }
    let spell =
        |ids: &[u32]| ids.iter().map(|id| tokenizer.piece(*id)).collect::<Vec<_>>().join(" ");
    linearized.windows.iter().map(|window| spell(&window.pieces)).collect()
}

#[test]
fn every_entity_token_has_the_marker_of_its_own_language() {
    let parts = [read("the O\nParty B-ORG\n"), read("the O\nParty B-ORG\nParty I-ORG\n")];
    let corpus = Corpus::from_languages(["en", "nl"].into_iter().zip(&parts));
    let found = pieces(&corpus);
    assert_eq!(found[0], "<s> ▁the <en> <B-ORG> ▁Part y <B-ORG> </s>");
    let two = "<nl> <B-ORG> ▁Part y <B-ORG> <nl> <I-ORG> ▁Part y <I-ORG>";
    assert_eq!(found[1], format!("<s> ▁the {two} </s>"));

    let settings = CodemixSettings { rate: Rate::constant(1.0), vectors: VectorKind::Words };
    let mut mix = Codemix::new(&corpus, DonorChoice::Random, None, settings).unwrap();
    let mixed = round(&mut mix, Seed(1).stream("test"), 1);
    let union = corpus.with_more(mixed.iter().map(|draft| draft.sentence.clone()));
    let found = pieces(&union);
    // An English sentence with a Dutch mention.
    assert_eq!(found[2], format!("<s> ▁the {two} </s>"));
    assert_eq!(found[3], "<s> ▁the <en> <B-ORG> ▁Part y <B-ORG> </s>");
}

#[test]
fn a_single_language_has_no_marker_and_a_marker_that_is_already_a_piece_is_refused() {
    let part = read("the O\nParty B-ORG\n");
    let alone = Corpus::from_languages([("en", &part)]);
    let mut own = tokenizer();
    let markers = Markers::from_corpora(&[&alone], &mut own).unwrap();
    assert_eq!(markers.iter().map(|(text, _)| text).collect::<Vec<_>>(), ["<B-ORG>"]);
    // A corpus with one language also gets a language marker if another corpus has several languages (`dev`), or if
    // the tokenizer already has the marker (`again`).
    let both = Corpus::from_languages([("nl", &part), ("en", &part)]);
    let mut own = tokenizer();
    let markers = Markers::from_corpora(&[&both, &alone], &mut own).unwrap();
    for (markers, name) in
        [(&markers, "dev"), (&Markers::from_corpora(&[&alone], &mut own).unwrap(), "again")]
    {
        let linearized = linearize(&alone, &own, Some(markers), 512).unwrap();
        assert_eq!(own.piece(linearized.windows[0].pieces[2]), "<en>", "{name}");
    }
    // The text `<s>` is already a piece, so that it cannot be the marker of the language `s`.
    let taken = Corpus::from_languages([("s", &part), ("en", &part)]);
    assert!(Markers::from_corpora(&[&taken], &mut tokenizer()).is_err());
    let bare = read("the O\nParty B\n");
    let taken = Corpus::from_languages([("B", &bare), ("en", &bare)]);
    assert!(Markers::from_corpora(&[&taken], &mut tokenizer()).is_err());
}
