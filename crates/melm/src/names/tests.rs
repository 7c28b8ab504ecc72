//! Tests of lists of names.

use super::*;
use melm_text::{ReadOptions, Source};

const GOLD: &str = "Ada B-PER\nsaw O\nNew B-LOC\nYork I-LOC\n\nWashington B-PER\nin O\n\
    Washington B-LOC\n\nRio B-LOC\n";

fn train() -> Corpus {
    Corpus::read(&Source::from_text("train.conll", GOLD), &ReadOptions::default()).unwrap()
}

fn list(entity_type: &str, text: &str) -> NameList {
    let options = TextOptions {
        format: Some(TextFormat::Plain),
        ..TextOptions::with_tokenizer(Tokenizer::default())
    };
    let text = UnlabelledText::read("names.txt", text.as_bytes(), &options).unwrap();
    NameList::from_text(entity_type, &text)
}

#[test]
fn lines_are_names_and_everything_left_out_is_counted() {
    let places = list("LOC", "Bonn\n\nNew York\nBonn\n  \nAda\nWashington\nSt. John's. Town\n");
    let names = Names::new(&[places], &train()).unwrap();
    let loc = train().types().find("LOC").unwrap();
    let found: Vec<String> = names
        .of_type(loc)
        .iter()
        .map(|name| name.iter().map(Token::as_str).collect::<Vec<_>>().join(" "))
        .collect();
    assert_eq!(found[..3], ["Bonn", "New York", "Washington"]);
    assert!(found[3].starts_with("St") && found[3].ends_with("Town"), "{found:?}");
    let counts = &names.counts()[0];
    assert_eq!((counts.names, counts.in_gold, counts.empty), (4, 2, 2));
    assert_eq!((counts.repeated, counts.contradicted), (1, 1));
    let first = counts.first_contradicted.as_deref().unwrap();
    assert_eq!(first, "line 6: `Ada` is PER in TRAIN");
    assert_eq!(
        names.notes(Rate::constant(0.5)),
        [
            "4 names for LOC from `names.txt`, for 50 % of new mentions; left out: 1 line repeated; left out: 1 line \
          with another type in TRAIN (line 6: `Ada` is PER in TRAIN); left out: 2 lines empty"
        ]
    );
    assert!(names.of_type(train().types().find("PER").unwrap()).is_empty());
}

#[test]
fn commas_in_most_lines_have_a_warning_and_rows_are_refused() {
    let places = list("LOC", "Bonn, NRW\nKiel, SH\nOslo\n");
    let note = Names::new(&[places], &train()).unwrap().notes(Rate::constant(0.5)).remove(0);
    assert!(note.contains("most lines have a comma (line 1: `Bonn, NRW`)"), "{note}");
    let message = |names: &[&str]| {
        let names: Vec<_> = names.iter().map(|&name| name.to_owned()).collect();
        match NameList::from_names("LOC", "places", &names, &train()).unwrap_err() {
            Error::Text(melm_text::Error::Data { problems, .. }) => {
                problems.first()[0].fault.to_string()
            }
            other => panic!("{other}"),
        }
    };
    assert!(message(&["Bonn B-LOC", "is O"]).contains("CoNLL rows"));
    assert_eq!(message(&[]), "the list contains no name");
}

#[test]
fn unknown_types_and_useless_lists_are_refused() {
    let error = Names::new(&[list("GPE", "Bonn\n")], &train()).unwrap_err().to_string();
    assert!(error.contains("`GPE`") && error.contains("LOC, PER"), "{error}");
    let error = Names::new(&[list("LOC", "Ada\n")], &train()).unwrap_err();
    assert!(matches!(error, Error::NoNames { contradicted: 1, .. }), "{error}");
    // A name that was in another list of the same type is a repeat.
    let lists = [list("LOC", "Bonn\n"), list("LOC", "Bonn\nOslo\n")];
    assert_eq!(Names::new(&lists, &train()).unwrap().counts()[1].repeated, 1);
}
