//! Tests section 2.1: markers for any tag set, with rows that are initialised from related words and mentions.

use std::collections::BTreeMap;

use melm::Error;
use melm::linearize::linearize;
use melm::markers::{MarkerStart, Markers, RowStart};
use melm::pieces::Tokenizer;
use melm_nn::config::Config;
use melm_nn::mlm::MaskedLm;
use melm_nn::params::TABLE;
use melm_text::Corpus;

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

/// Returns the mean of the rows of pieces.
fn mean(model: &MaskedLm, tokenizer: &Tokenizer, pieces: &[&str]) -> Vec<f32> {
    let rows: Vec<_> =
        pieces.iter().map(|piece| row(model, tokenizer.id(piece).unwrap())).collect();
    (0..8).map(|at| rows.iter().map(|row| row[at]).sum::<f32>() / rows.len() as f32).collect()
}

#[track_caller]
fn assert_close(found: &[f32], expected: &[f32]) {
    let is_close = |(a, b): (&f32, &f32)| (a - b).abs() < 1e-6;
    assert!(found.iter().zip(expected).all(is_close), "{found:?} instead of {expected:?}");
}

fn report(starts: &[MarkerStart]) -> Vec<String> {
    let one = |s: &MarkerStart| {
        format!("{} {} {} {}", s.marker, s.words.join("+"), s.n_pieces, s.n_tokens)
    };
    starts.iter().map(one).collect()
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
    let start = RowStart::RelatedWords;
    let starts = markers.initialise(&mut model, &tokenizer, start, &given, &corpus).unwrap();
    assert_eq!(
        report(&starts),
        ["<B-ORG> organization 1 0", "<B-Stadt> city+town 2 0", "<I-ORG> organization 1 0"]
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
fn derived_words_of_many_pieces_are_left_out() {
    // `mini` cuts `miscellaneous` into four pieces and `ordinal` into three.
    let corpus = read("a/B-MISC b/B-ORDINAL c/B-Ordinal_Anatomy d/B-KEEP e/B-Glaziologe");
    let mut tokenizer = mini();
    let markers = Markers::from_corpora(&[&corpus], &mut tokenizer).unwrap();
    let mut model = model(tokenizer.n_pieces());
    let given = BTreeMap::from([("KEEP".to_owned(), vec!["miscellaneous".to_owned()])]);
    let start = RowStart::RelatedWords;
    let starts = markers.initialise(&mut model, &tokenizer, start, &given, &corpus).unwrap();
    assert_eq!(
        report(&starts),
        [
            // No word has one or two pieces.
            "<B-Glaziologe> glaziologe 3 0",
            // Given words are used as they are.
            "<B-KEEP> miscellaneous 4 0",
            "<B-MISC> nationality+event+product+title 4 0",
            "<B-ORDINAL> first+second 2 0",
            "<B-Ordinal_Anatomy> first+second+anatomy 4 0",
        ]
    );
    let pieces = ["▁nationality", "▁event", "▁product", "▁title"];
    let misc = row(&model, tokenizer.id("<B-MISC>").unwrap());
    assert_close(&misc, &mean(&model, &tokenizer, &pieces));
}

#[test]
fn the_words_with_the_fewest_pieces_are_used_if_all_are_long() {
    // The tokenizer of the tests has few pieces.
    let corpus = read("a/B-MISC b/O");
    let mut tokenizer = tokenizer("unigram");
    let markers = Markers::from_corpora(&[&corpus], &mut tokenizer).unwrap();
    let mut model = model(tokenizer.n_pieces());
    let n_pieces = |word: &str| {
        let encoded = tokenizer.encode(&[word]).unwrap();
        (encoded.tokens[0].end - encoded.tokens[0].start) as usize
    };
    let words = ["miscellaneous", "nationality", "event", "product", "title"];
    let fewest = words.iter().map(|word| n_pieces(word)).min().unwrap();
    assert!(fewest > 2, "{fewest}");
    let expected: Vec<_> = words.into_iter().filter(|word| n_pieces(word) == fewest).collect();
    let (start, given) = (RowStart::RelatedWords, BTreeMap::new());
    let starts = markers.initialise(&mut model, &tokenizer, start, &given, &corpus).unwrap();
    assert_eq!(starts[0].words, expected);
}

/// The entity types of `CoNLL`, `OntoNotes`, the five domains of `CrossNER`, `WNUT` 2017, `GermEval` and `MultiCoNER`.
const USUAL_TYPES: &str = "PER ORG LOC MISC \
    PERSON NORP FAC GPE PRODUCT EVENT WORK_OF_ART LAW LANGUAGE DATE TIME PERCENT MONEY QUANTITY ORDINAL CARDINAL \
    politician person organisation politicalparty event election country location misc \
    scientist university discipline enzyme protein chemicalelement chemicalcompound astronomicalobject \
    academicjournal theory award musicgenre song band album musicalartist musicalinstrument \
    book writer poem magazine literarygenre \
    field task product algorithm researcher metrics programlang conference \
    corporation creative-work group OTH LOCderiv PERpart PROD CW CORP GRP Disease Chemical Gene";

#[test]
fn every_usual_type_starts_from_a_whole_word_of_mini() {
    let rows = USUAL_TYPES.split_ascii_whitespace().map(|name| format!("a/B-{name} "));
    let corpus = read(&rows.collect::<String>());
    let mut tokenizer = mini();
    let markers = Markers::from_corpora(&[&corpus], &mut tokenizer).unwrap();
    let mut model = model(tokenizer.n_pieces());
    let (start, given) = (RowStart::RelatedWords, BTreeMap::new());
    let starts = markers.initialise(&mut model, &tokenizer, start, &given, &corpus).unwrap();
    assert_eq!(starts.len(), USUAL_TYPES.split_ascii_whitespace().count());
    for start in starts {
        let encoded = tokenizer.encode(&start.words).unwrap();
        let n_pieces: Vec<_> = encoded.tokens.iter().map(|word| word.end - word.start).collect();
        assert!(n_pieces.contains(&1), "{start:?}: {n_pieces:?}");
        assert!(n_pieces.iter().all(|n| *n <= 2), "{start:?}: {n_pieces:?}");
    }
}

/// Initialises the markers of a corpus whose dev set has a type that the training set lacks.
fn started_from_mentions(start: RowStart) -> (MaskedLm, Tokenizer, Vec<String>) {
    let train = read("Paris/B-LOC and/O New/B-LOC York/I-LOC City/I-LOC |/O Paris/B-LOC");
    let dev = read("Bonn/B-LOC in/O Siemens/B-ORG");
    let mut tokenizer = mini();
    let markers = Markers::from_corpora(&[&train, &dev], &mut tokenizer).unwrap();
    let mut model = model(tokenizer.n_pieces());
    for (at, bias) in model.parameters_mut().get_mut("lm_head.bias").unwrap().iter_mut().enumerate()
    {
        *bias = at as f32;
    }
    let given = BTreeMap::new();
    let starts = markers.initialise(&mut model, &tokenizer, start, &given, &train).unwrap();
    (model, tokenizer, report(&starts))
}

#[test]
fn rows_start_as_the_mean_over_the_training_tokens_with_the_tag() {
    let (model, tokenizer, reported) = started_from_mentions(RowStart::Mentions);
    // Dev tokens are not counted. A type without training tokens starts from related words.
    assert_eq!(reported, ["<B-LOC>  0 3", "<B-ORG> organization 1 0", "<I-LOC>  0 2"]);
    let marker = |text: &str| row(&model, tokenizer.id(text).unwrap());
    let first = mean(&model, &tokenizer, &["▁Paris", "▁New", "▁Paris"]);
    assert_close(&marker("<B-LOC>"), &first);
    assert_close(&marker("<I-LOC>"), &mean(&model, &tokenizer, &["▁York", "▁City"]));
    assert_eq!(marker("<B-ORG>"), mean(&model, &tokenizer, &["▁organization"]));
    let bias = model.parameters().get("lm_head.bias").unwrap();
    let id = |piece: &str| tokenizer.id(piece).unwrap();
    let expected = (id("▁York") + id("▁City")) as f32 / 2.0;
    assert!((bias[id("<I-LOC>") as usize] - expected).abs() < 1e-2);
}

#[test]
fn language_markers_start_from_the_name_of_the_language() {
    let part = read("Paris/B-LOC and/O");
    let train = Corpus::from_languages([("en", &part), ("de", &part)]);
    let mut tokenizer = mini();
    let markers = Markers::from_corpora(&[&train], &mut tokenizer).unwrap();
    for (start, location) in [
        (RowStart::Mentions, "<B-LOC>  0 2"),
        (RowStart::RelatedAndMentions, "<B-LOC> location 1 2"),
    ] {
        let mut model = model(tokenizer.n_pieces());
        let given = BTreeMap::new();
        let starts = markers.initialise(&mut model, &tokenizer, start, &given, &train).unwrap();
        assert_eq!(report(&starts), [location, "<de> Deutsch 1 0", "<en> English 1 0"]);
        let german = row(&model, tokenizer.id("<de>").unwrap());
        assert_eq!(german, mean(&model, &tokenizer, &["▁Deutsch"]));
    }
}

#[test]
fn rows_can_start_halfway_between_related_words_and_mentions() {
    let (model, tokenizer, reported) = started_from_mentions(RowStart::RelatedAndMentions);
    let expected = ["<B-LOC> location 1 3", "<B-ORG> organization 1 0", "<I-LOC> location 1 2"];
    assert_eq!(reported, expected);
    let marker = |text: &str| row(&model, tokenizer.id(text).unwrap());
    // One word and three tokens: the word has half of the weight, and each token a sixth.
    let pieces = ["▁location", "▁location", "▁location", "▁Paris", "▁New", "▁Paris"];
    assert_close(&marker("<B-LOC>"), &mean(&model, &tokenizer, &pieces));
    let pieces = ["▁location", "▁location", "▁York", "▁City"];
    assert_close(&marker("<I-LOC>"), &mean(&model, &tokenizer, &pieces));
    assert_eq!(marker("<B-ORG>"), mean(&model, &tokenizer, &["▁organization"]));
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
        let starts = markers.initialise(&mut model, &tokenizer, start, &words, &corpus).unwrap();
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
    let start = RowStart::RelatedWords;
    let starts = markers.initialise(&mut model, &tokenizer, start, &given, &corpus).unwrap();
    assert_eq!((starts[0].n_pieces, starts[0].n_tokens), (0, 0));
    assert_eq!(row(&model, id), drawn);
}

#[test]
fn a_dev_tag_without_a_marker_is_refused_by_name() {
    let mut tokenizer = tokenizer("unigram");
    let markers = Markers::from_corpora(&[&read("a/B-PER b/O")], &mut tokenizer).unwrap();
    let error = linearize(&read("a/B-LOC b/O"), &tokenizer, Some(&markers), 99).unwrap_err();
    assert!(matches!(error, Error::NoMarker { ref tag } if tag == "B-LOC"), "{error}");
}
