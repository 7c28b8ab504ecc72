//! Tests section 2.1: markers for any tag set, with rows that are initialised from related words.

use std::collections::BTreeMap;

use melm::Error;
use melm::linearize::linearize;
use melm::markers::{Markers, RowStart};
use melm_nn::config::Config;
use melm_nn::mlm::MaskedLm;
use melm_nn::params::TABLE;

use crate::support::{mini, read, tokenizer};

fn model(n_pieces: usize) -> MaskedLm {
    let config = Config {
        vocab_size: n_pieces,
        hidden_size: 8,
        n_layers: 1,
        n_heads: 2,
        intermediate_size: 8,
        ..Config::default()
    };
    MaskedLm::random(&config, 1).unwrap()
}

fn row(model: &MaskedLm, id: u32) -> Vec<f32> {
    model.parameters().get(TABLE).unwrap()[id as usize * 8..(id as usize + 1) * 8].to_vec()
}

#[test]
fn markers_are_spelled_as_the_tags_of_the_corpus() {
    for (text, expected) in [
        ("a/B-PER b/I-PER c/O", "<B-PER> <I-PER>"),
        ("a/B b/I c/O d/B", "<B> <I>"),
        ("a/B-X b/L-X c/U-Y", "<B-X> <L-X> <U-Y>"),
        ("a/O b/O", ""),
    ] {
        let markers = Markers::from_corpora(&[&read(text)], &mut tokenizer("unigram")).unwrap();
        let texts: Vec<_> = markers.iter().map(|(text, _)| text).collect();
        assert_eq!(texts.join(" "), expected);
    }
}

#[test]
fn rows_and_biases_are_initialised_as_the_mean_over_related_words() {
    let corpus = read("a/B-ORG b/I-ORG c/O d/B-Stadt");
    let mut tokenizer = mini();
    let markers = Markers::from_corpora(&[&corpus], &mut tokenizer).unwrap();
    let mut model = model(tokenizer.n_pieces());
    for (at, bias) in model.parameters_mut().get_mut("lm_head.bias").unwrap().iter_mut().enumerate()
    {
        *bias = at as f32;
    }
    let given = BTreeMap::from([("Stadt".to_owned(), vec!["city".to_owned(), "town".to_owned()])]);
    let starts =
        markers.initialise(&mut model, &tokenizer, RowStart::RelatedWords, &given).unwrap();
    let reported: Vec<_> = starts
        .iter()
        .map(|s| format!("{} {} {}", s.marker, s.words.join("+"), s.n_pieces))
        .collect();
    assert_eq!(
        reported,
        ["<B-ORG> organization 1", "<B-Stadt> city+town 2", "<I-ORG> organization 1"]
    );

    let id = |piece: &str| tokenizer.id(piece).unwrap();
    assert_eq!(row(&model, id("<B-ORG>")), row(&model, id("▁organization")));
    assert_eq!(row(&model, id("<I-ORG>")), row(&model, id("▁organization")));
    let (city, town) = (row(&model, id("▁city")), row(&model, id("▁town")));
    for (mean, (a, b)) in row(&model, id("<B-Stadt>")).iter().zip(city.iter().zip(&town)) {
        assert!((mean - (a + b) / 2.0).abs() < 1e-7);
    }
    let bias = model.parameters().get("lm_head.bias").unwrap();
    let expected = (id("▁city") + id("▁town")) as f32 / 2.0;
    assert!((bias[id("<B-Stadt>") as usize] - expected).abs() < 1e-2);
}

#[test]
fn rows_can_be_random_or_as_in_the_authors_code() {
    let corpus = read("a/B-ORG b/O");
    let mut tokenizer = mini();
    let markers = Markers::from_corpora(&[&corpus], &mut tokenizer).unwrap();
    let (_, id) = markers.iter().next().unwrap();
    let drawn = model(tokenizer.n_pieces());
    let words = BTreeMap::new();
    let started = |start| {
        let mut model = model(tokenizer.n_pieces());
        let starts = markers.initialise(&mut model, &tokenizer, start, &words).unwrap();
        (model, starts[0].n_pieces)
    };
    let (random, n_pieces) = started(RowStart::Random);
    assert_eq!((row(&random, id), n_pieces), (row(&drawn, id), 0));
    let (added, n_pieces) = started(RowStart::RelatedAdded);
    assert_eq!(n_pieces, 1);
    let word = row(&drawn, tokenizer.id("▁organization").unwrap());
    for ((found, drawn), word) in row(&added, id).iter().zip(row(&drawn, id)).zip(word) {
        assert!((found - (drawn + word)).abs() < 1e-7);
    }
}

#[test]
fn without_a_known_piece_the_row_stays_random_and_is_reported() {
    let corpus = read("a/B-X b/O");
    let mut tokenizer = tokenizer("unigram");
    let markers = Markers::from_corpora(&[&corpus], &mut tokenizer).unwrap();
    let mut model = model(tokenizer.n_pieces());
    let (_, id) = markers.iter().next().unwrap();
    let drawn = row(&model, id);
    // The empty word has no visible character; its only piece is `<unk>`.
    let given = BTreeMap::from([("X".to_owned(), vec![String::new()])]);
    let starts =
        markers.initialise(&mut model, &tokenizer, RowStart::RelatedWords, &given).unwrap();
    assert_eq!(starts[0].n_pieces, 0);
    assert_eq!(row(&model, id), drawn);
}

#[test]
fn a_dev_tag_without_a_marker_is_refused_by_name() {
    let mut tokenizer = tokenizer("unigram");
    let markers = Markers::from_corpora(&[&read("a/B-PER b/O")], &mut tokenizer).unwrap();
    let error = linearize(&read("a/B-LOC b/O"), &tokenizer, Some(&markers), 99).unwrap_err();
    assert!(matches!(error, Error::NoMarker { ref tag } if tag == "B-LOC"), "{error}");
}
