//! Compares scores with those of seqeval on random pairs of tag sequences, most of them malformed.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use melm_text::score::{Counts, Rates, Reading, Weight};
use melm_text::{EntityTypes, Scheme, Scores, Tag};
use serde::Deserialize;

#[derive(Deserialize)]
struct Pair {
    scheme: String,
    gold: Vec<String>,
    predicted: Vec<String>,
    default: Expected,
    strict: Expected,
}

/// Each array holds precision, recall, F1 and support.
#[derive(Deserialize)]
struct Expected {
    micro: [f64; 4],
    #[serde(rename = "macro")]
    equal: [f64; 4],
    weighted: [f64; 4],
    types: Vec<[f64; 4]>,
}

fn parse(sentences: &[String], types: &mut EntityTypes) -> Vec<Vec<Tag>> {
    let tags = |line: &String| line.split(' ').map(|tag| types.parse(tag).unwrap()).collect();
    sentences.iter().map(tags).collect()
}

fn assert_same(what: &str, rates: Rates, support: u64, expected: [f64; 4]) {
    let ours = [rates.precision, rates.recall, rates.f1, support as f64];
    for (ours, theirs) in ours.into_iter().zip(expected) {
        assert!((ours - theirs).abs() < 1e-8, "{what}: ours {ours}, seqeval {theirs}");
    }
}

fn assert_scores(what: &str, scores: &Scores, types: &EntityTypes, expected: &Expected) {
    let micro = scores.micro();
    assert_same(&format!("{what} micro"), micro.rates(), micro.gold, expected.micro);
    let equal = scores.mean(Weight::Equal);
    assert_same(&format!("{what} macro"), equal, micro.gold, expected.equal);
    let weighted = scores.mean(Weight::Support);
    assert_same(&format!("{what} weighted"), weighted, micro.gold, expected.weighted);
    let by_type: Vec<(_, Counts)> = scores.by_type();
    assert_eq!(by_type.len(), expected.types.len(), "{what}: number of types");
    for ((entity_type, counts), expected) in by_type.into_iter().zip(&expected.types) {
        let what = format!("{what} {}", types.display_name(entity_type));
        assert_same(&what, counts.rates(), counts.gold, *expected);
    }
}

#[test]
fn scores_equal_seqeval_in_both_modes_and_every_scheme() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/scores.jsonl");
    let text = std::fs::read_to_string(path).unwrap();
    let mut n = 0;
    for (at, line) in text.lines().enumerate().skip(1) {
        let pair: Pair = serde_json::from_str(line).unwrap();
        let mut types = EntityTypes::default();
        let gold = parse(&pair.gold, &mut types);
        let predicted = parse(&pair.predicted, &mut types);
        let scheme: Scheme = pair.scheme.parse().unwrap();
        for (reading, expected) in
            [(Reading::Lenient, &pair.default), (Reading::Strict(scheme), &pair.strict)]
        {
            let mut scores = Scores::new(reading, types.clone());
            for (gold, predicted) in gold.iter().zip(&predicted) {
                scores.add(gold, predicted);
            }
            let what = format!("line {} {reading:?}", at + 1);
            assert_scores(&what, &scores, &types, expected);
        }
        n += 1;
    }
    assert!(n >= 2_000, "only {n} pairs");
}
