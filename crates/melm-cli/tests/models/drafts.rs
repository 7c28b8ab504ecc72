//! Reads corpora and `drafts.jsonl` without the library.

use std::fs;
use std::path::Path;

use serde_json::Value;

/// A sentence: tokens and tags.
pub(crate) type Sentence = (Vec<String>, Vec<String>);

/// Parses a two-column text.
pub(crate) fn sentences(text: &str) -> Vec<Sentence> {
    let rows = |block: &str| {
        let rows = block.lines().map(|row| row.split_once(' ').unwrap());
        rows.map(|(token, tag)| (token.to_owned(), tag.to_owned())).unzip()
    };
    text.split("\n\n").filter(|block| !block.is_empty()).map(rows).collect()
}

pub(crate) fn to_text(sentences: &[Sentence]) -> String {
    let row = |(token, tag): (&String, &String)| format!("{token} {tag}\n");
    let rows = |(tokens, tags): &Sentence| tokens.iter().zip(tags).map(row).collect::<String>();
    sentences.iter().map(|sentence| rows(sentence) + "\n").collect()
}

pub(crate) fn read(path: &Path) -> Vec<Value> {
    let text = fs::read_to_string(path).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

pub(crate) fn texts(list: &Value) -> Vec<String> {
    list.as_array().unwrap().iter().map(|text| text.as_str().unwrap().to_owned()).collect()
}

pub(crate) fn content(draft: &Value) -> Sentence {
    (texts(&draft["tokens"]), texts(&draft["tags"]))
}

pub(crate) fn kept(drafts: &[Value]) -> Vec<Sentence> {
    drafts.iter().filter(|draft| draft["verdict"] == "kept").map(content).collect()
}

/// Asserts that every verdict agrees with the other values of the draft and with its source.
pub(crate) fn assert_explained(drafts: &[Value], gold: &[Sentence]) {
    let mut before: Vec<Sentence> = Vec::new();
    for draft in drafts {
        let source = &gold[usize::try_from(draft["source"].as_u64().unwrap()).unwrap() - 1];
        let own = content(draft);
        let disagreements = draft["disagreements"].as_array();
        match draft["verdict"].as_str().unwrap() {
            "kept" => assert!(disagreements.is_none(), "{draft}"),
            "disagrees" => {
                for one in disagreements.unwrap() {
                    let token = usize::try_from(one["token"].as_u64().unwrap()).unwrap();
                    assert_eq!(one["wanted"].as_str().unwrap(), own.1[token], "{draft}");
                    assert_ne!(one["wanted"], one["found"], "{draft}");
                }
            }
            "repeats-source" => assert_eq!(own, *source),
            "repeats-gold" => assert!(own != *source && gold.contains(&own), "{draft}"),
            "copied" => {
                assert!(own == *source && own.1.iter().all(|tag| tag == "O"), "{draft}");
                continue;
            }
            "repeats-draft" => assert!(before.contains(&own), "{draft}"),
            other => panic!("unexpected verdict: {other}"),
        }
        before.push(own);
    }
}

/// Asserts that the tags, and the tokens outside mentions, are the same as in the source.
pub(crate) fn assert_tags_unchanged(drafts: &[Value], gold: &[Sentence]) {
    for draft in drafts {
        let (tokens, tags) = &gold[usize::try_from(draft["source"].as_u64().unwrap()).unwrap() - 1];
        let own = content(draft);
        assert_eq!(own.1, *tags, "{draft}");
        for ((token, new), tag) in tokens.iter().zip(&own.0).zip(tags) {
            assert!(tag != "O" || token == new, "{draft}");
        }
        for replaced in draft["replaced"].as_array().unwrap() {
            let at = |key: &str| usize::try_from(replaced[key].as_u64().unwrap()).unwrap();
            assert_eq!(texts(&replaced["new"]), own.0[at("start")..at("end")], "{draft}");
            assert_eq!(texts(&replaced["old"]), tokens[at("start")..at("end")], "{draft}");
            for piece in replaced["pieces"].as_array().unwrap() {
                assert!((1..=5).contains(&piece["rank"].as_u64().unwrap()), "{draft}");
                assert!(piece["log_probability"].as_f64().unwrap() <= 0.0, "{draft}");
            }
        }
    }
}
