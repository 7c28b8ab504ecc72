//! Section 2.1: "we add the label token before and after each entity token".

use melm::linearize::{Linearized, LinearizedCorpus, linearize};
use melm::markers::Markers;
use melm::pieces::{Encoded, Tokenizer};
use melm_text::{Corpus, Sentence, Tag};
use proptest::prelude::*;

use crate::support::{TINY, corpus, mini, read, tokenizer};

/// Returns the texts of pieces and markers that the paper's text asks for.
fn expected_by_paper(corpus: &Corpus, sentence: &Sentence, tokenizer: &Tokenizer) -> Vec<String> {
    let mut texts = vec!["<s>".to_owned()];
    for (token, tag) in sentence.tokens().iter().zip(sentence.tags()) {
        let marker = format!("<{}>", corpus.types().spell(*tag, corpus.scheme()));
        let around = if *tag == Tag::Outside { vec![] } else { vec![marker] };
        let encoded = tokenizer.encode(&[token]).unwrap();
        let pieces = &encoded.pieces[1..encoded.pieces.len() - 1];
        texts.extend(around.clone());
        texts.extend(pieces.iter().map(|id| tokenizer.piece(*id).to_owned()));
        texts.extend(around);
    }
    texts.push("</s>".to_owned());
    texts
}

fn linearize_marked(corpus: &Corpus, tokenizer: &mut Tokenizer, limit: usize) -> LinearizedCorpus {
    let markers = Markers::from_corpora(&[corpus], tokenizer).unwrap();
    linearize(corpus, tokenizer, Some(&markers), limit).unwrap()
}

fn texts(linearized: &Linearized, tokenizer: &Tokenizer) -> Vec<String> {
    linearized.pieces.iter().map(|id| tokenizer.piece(*id).to_owned()).collect()
}

/// Returns the window as the tokenizer would encode it without markers.
fn unlinearized(window: &Linearized) -> Encoded {
    let mut encoded = Encoded { pieces: vec![window.pieces[0]], ..Encoded::default() };
    let count = |n: usize| u32::try_from(n).unwrap();
    for place in &window.piece_ranges {
        let start = encoded.pieces.len();
        encoded.pieces.extend(&window.pieces[place.clone()]);
        encoded.tokens.push(count(start)..count(encoded.pieces.len()));
    }
    encoded.pieces.extend(window.pieces.last());
    encoded
}

proptest! {
    #[test]
    fn windows_match_the_paper_and_unlinearizing_is_exact(corpus in corpus()) {
        for name in TINY {
            let mut tokenizer = tokenizer(name);
            let found = linearize_marked(&corpus, &mut tokenizer, usize::MAX);
            let with: Vec<_> = (0..).zip(corpus.sentences()).filter(|(_, s)| s.mentions().count() > 0).collect();
            prop_assert_eq!(found.windows.len(), with.len());
            prop_assert_eq!(found.n_without_mentions, corpus.sentences().len() - with.len());
            prop_assert_eq!((found.n_windowed, found.n_left_out), (0, 0));
            for (linearized, (number, sentence)) in found.windows.iter().zip(with) {
                prop_assert_eq!(linearized.sentence, number);
                prop_assert_eq!(texts(linearized, &tokenizer), expected_by_paper(&corpus, sentence, &tokenizer));
                let encoded = tokenizer.encode(sentence.tokens()).unwrap();
                let again = unlinearized(linearized);
                prop_assert_eq!((again.pieces, again.tokens), (encoded.pieces, encoded.tokens));
            }
        }
    }

    #[test]
    fn windows_fit_and_contain_every_mention_exactly_once(corpus in corpus(), limit in 3usize..40, marked: bool) {
        let mut tokenizer = tokenizer("unigram");
        let markers = Markers::from_corpora(&[&corpus], &mut tokenizer).unwrap();
        let found = linearize(&corpus, &tokenizer, marked.then_some(&markers), limit).unwrap();
        let mut n_shown = 0;
        for (number, sentence) in corpus.sentences().iter().enumerate() {
            let windows: Vec<_> = found.windows.iter().filter(|w| w.sentence == number).collect();
            let mut shown: Vec<_> = windows.iter().flat_map(|w| &w.entities).map(|e| (e.mention, e.token)).collect();
            let numbers: std::collections::BTreeSet<_> = shown.iter().map(|(mention, _)| *mention).collect();
            n_shown += numbers.len();
            shown.sort_unstable();
            let whole: Vec<_> = sentence.mentions().enumerate().filter(|(m, _)| numbers.contains(m))
                .flat_map(|(m, mention)| mention.tokens.map(move |token| (m, token))).collect();
            prop_assert_eq!(shown, whole);
            for window in windows {
                prop_assert!(window.pieces.len() <= limit);
                let encoded = tokenizer.encode(&sentence.tokens()[window.tokens.clone()]).unwrap();
                prop_assert_eq!(unlinearized(window).pieces, encoded.pieces);
                for entity in &window.entities {
                    prop_assert_eq!(&window.piece_ranges[entity.token - window.tokens.start], &entity.piece_range);
                    let markers: Vec<_> = markers.iter().map(|(_, id)| id).collect();
                    let before = window.pieces[entity.piece_range.start - 1];
                    prop_assert_eq!(markers.contains(&before), marked);
                    prop_assert!(!marked || before == window.pieces[entity.piece_range.end]);
                }
            }
        }
        let n_mentions: usize = corpus.sentences().iter().map(|s| s.mentions().count()).sum();
        prop_assert_eq!(n_shown + found.n_left_out, n_mentions);
    }
}

#[test]
fn an_example_has_the_expected_pieces_and_ranges() {
    let corpus = read("near/O Bad/B-LOC Godesberg/I-LOC");
    let mut tokenizer = mini();
    let found = linearize_marked(&corpus, &mut tokenizer, 512);
    let window = &found.windows[0];
    assert_eq!(
        texts(window, &tokenizer).join(" "),
        "<s> ▁near <B-LOC> ▁Bad <B-LOC> <I-LOC> ▁God es berg <I-LOC> </s>"
    );
    assert_eq!(window.piece_ranges, [1..2, 3..4, 6..9]);
    let entities: Vec<_> = window.entities.iter().map(|e| (e.token, e.mention)).collect();
    assert_eq!(entities, [(1, 0), (2, 0)]);
}

#[test]
fn a_mention_that_does_not_fit_becomes_context_and_is_counted() {
    let corpus = read("a/B-X b/I-X c/I-X d/I-X e/O f/O g/B-X h/O");
    let mut tokenizer = tokenizer("byte_level");
    // Each token has one or two pieces and two markers, so that four entity tokens need at least twelve pieces.
    let found = linearize_marked(&corpus, &mut tokenizer, 2 + 11);
    assert_eq!((found.n_left_out, found.n_windowed), (1, 0));
    assert!(found.windows[0].entities.iter().all(|entity| entity.mention == 1));
}
