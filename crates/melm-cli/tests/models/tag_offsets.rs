//! The offsets that `melm tag` writes for raw text, in the unit of each format. The offsets are resolved here with the
//! standard library, and compared with the text of each line and with the tags of the CoNLL output.

use std::fs;
use std::path::Path;

use melm_text::spacy::read_doc_bin;
use serde_json::Value;

use crate::support::{done, folder};

/// Texts with emoji, combining characters, right-to-left text, and CRLF inside, with mentions that the tagger learns by
/// heart.
const TEXTS: [(&str, &[&str]); 4] = [
    ("👩‍👧 😀  Ada Lovelace met 👍🏽 in London.", &["Ada Lovelace", "London"]),
    ("Zoe\u{308} lives in Ko\u{308}ln.", &["Zoe\u{308}", "Ko\u{308}ln"]),
    ("😀 דנה גרה בחיפה.", &["דנה"]),
    ("Oslo:\r\n 😀 Bjo\u{308}rk sang.", &["Oslo", "Bjo\u{308}rk"]),
];

/// The rows of the texts, as the tokenizer splits them.
const ROWS: &str = "👩‍👧 O\n😀 O\nAda B-PER\nLovelace I-PER\nmet O\n👍🏽 O\nin O\nLondon B-LOC\n. O\n\n\
    Zoe\u{308} B-PER\nlives O\nin O\nKo\u{308}ln B-LOC\n. O\n\n\
    😀 O\nדנה B-PER\nגרה O\nבחיפה O\n. O\n\n\
    Oslo B-LOC\n: O\n\n😀 O\nBjo\u{308}rk B-PER\nsang O\n. O\n\n\
    Oslo B-LOC\n: O\n😀 O\nBjo\u{308}rk B-PER\nsang O\n. O\n\n";

/// A text and the text of each span in it.
type Tagged = (String, Vec<String>);

/// Returns a folder with a tagger and `texts.jsonl`.
fn prepared() -> tempfile::TempDir {
    let folder = folder();
    let path = folder.path();
    fs::write(path.join("train.conll"), ROWS).unwrap();
    done(
        path,
        "train train.conll --dev train.conll -o tagger --model model --preset best \
         --set tagger.learning_rate=0.02 --epochs 40",
    );
    let line = |(text, _): &(&str, &[&str])| serde_json::json!({ "text": text }).to_string() + "\n";
    fs::write(path.join("texts.jsonl"), TEXTS.iter().map(line).collect::<String>()).unwrap();
    folder
}

/// Tags a file and returns the output.
fn tag(folder: &Path, file: &str, format: &str, out: &str) -> Vec<u8> {
    done(folder, &format!("tag tagger {file} --to {format} -o {out} --force"));
    fs::read(folder.join(out)).unwrap()
}

fn objects(format: &str, bytes: &[u8]) -> Vec<Value> {
    let text = std::str::from_utf8(bytes).unwrap();
    match format {
        "label-studio" | "gliner" => serde_json::from_str(text).unwrap(),
        _ => text.lines().map(|line| serde_json::from_str(line).unwrap()).collect(),
    }
}

fn number(value: &Value) -> usize {
    usize::try_from(value.as_u64().unwrap()).unwrap()
}

fn list(value: &Value) -> &[Value] {
    value.as_array().unwrap()
}

/// Returns the characters from `start` to `end`.
fn characters(text: &str, start: usize, end: usize) -> String {
    let chars: Vec<char> = text.chars().collect();
    chars[start..end].iter().collect()
}

fn label_studio(task: &Value) -> Tagged {
    let text = task["data"]["text"].as_str().unwrap();
    let span = |result: &Value| {
        let value = &result["value"];
        let surface = characters(text, number(&value["start"]), number(&value["end"]));
        assert_eq!(value["text"], surface);
        surface
    };
    (text.to_owned(), list(&task["annotations"][0]["result"]).iter().map(span).collect())
}

fn doccano(object: &Value) -> Tagged {
    let text = object["text"].as_str().unwrap();
    let units: Vec<u16> = text.encode_utf16().collect();
    let span =
        |label: &Value| String::from_utf16(&units[number(&label[0])..number(&label[1])]).unwrap();
    (text.to_owned(), list(&object["label"]).iter().map(span).collect())
}

fn prodigy(object: &Value) -> Tagged {
    let text = object["text"].as_str().unwrap();
    let select = |one: &Value| characters(text, number(&one["start"]), number(&one["end"]));
    for token in list(&object["tokens"]) {
        assert_eq!(token["text"], select(token));
    }
    (text.to_owned(), list(&object["spans"]).iter().map(select).collect())
}

fn spacy(bytes: &[u8]) -> Vec<Tagged> {
    let document = |one: melm_text::spacy::SpacyDoc| {
        let span = |mention: &melm_text::spacy::SpacyMention| {
            let tokens = &one.tokens[mention.tokens.clone()];
            one.text[tokens[0].start..tokens[tokens.len() - 1].end].to_owned()
        };
        let spans = one.mentions.iter().map(span).collect();
        (one.text, spans)
    };
    read_doc_bin(bytes).unwrap().documents.into_iter().map(document).collect()
}

/// The texts and mentions that the tagger must find.
fn expected() -> Vec<Tagged> {
    let owned = |(text, names): &(&str, &[&str])| {
        ((*text).to_owned(), names.iter().map(|&name| name.to_owned()).collect())
    };
    TEXTS.iter().map(owned).collect()
}

#[test]
fn predicted_spans_select_their_text_in_the_unit_of_each_format() {
    let folder = prepared();
    let path = folder.path();
    for (format, out, read) in [
        ("label-studio", "out.json", label_studio as fn(&Value) -> Tagged),
        ("doccano", "out.jsonl", doccano),
        ("prodigy", "out.jsonl", prodigy),
    ] {
        let bytes = tag(path, "texts.jsonl", format, out);
        let found: Vec<Tagged> = objects(format, &bytes).iter().map(read).collect();
        assert_eq!(found, expected(), "{format}");
    }
    assert_eq!(spacy(&tag(path, "texts.jsonl", "spacy", "out.spacy")), expected());
}

#[test]
fn predicted_spans_of_brat_select_their_text_in_its_text_file() {
    let folder = prepared();
    let annotations = tag(folder.path(), "texts.jsonl", "brat", "out.ann");
    let text = fs::read_to_string(folder.path().join("out.txt")).unwrap();
    for (one, _) in TEXTS {
        assert!(text.contains(one), "{text:?}");
    }
    let mut found = Vec::new();
    for line in String::from_utf8(annotations).unwrap().lines() {
        let [_, place, surface] = line.split('\t').collect::<Vec<_>>()[..] else {
            panic!("{line}")
        };
        let offsets: Vec<usize> =
            place.split(' ').skip(1).map(|offset| offset.parse().unwrap()).collect();
        assert_eq!(characters(&text, offsets[0], offsets[1]), surface);
        found.push(surface.to_owned());
    }
    let wanted: Vec<String> = expected().into_iter().flat_map(|(_, names)| names).collect();
    assert_eq!(found, wanted);
}

/// Formats with tokens only: the mentions are those of the text, without its spacing.
#[test]
fn predicted_tags_of_formats_without_text_have_the_same_mentions() {
    let folder = prepared();
    let path = folder.path();
    let wanted: Vec<String> = expected().into_iter().flat_map(|(_, names)| names).collect();
    let mut found = Vec::new();
    for object in objects("gliner", &tag(path, "texts.jsonl", "gliner", "out.json")) {
        let tokens: Vec<_> =
            list(&object["tokenized_text"]).iter().map(|t| t.as_str().unwrap()).collect();
        let spans = list(&object["ner"]).iter();
        found.extend(spans.map(|span| tokens[number(&span[0])..=number(&span[1])].join(" ")));
    }
    assert_eq!(found, wanted);
    for (format, out) in [("jsonl", "out.jsonl"), ("parquet", "out.parquet")] {
        tag(path, "texts.jsonl", format, out);
        done(path, &format!("convert {out} --to conll -o {format}.conll"));
    }
    tag(path, "texts.jsonl", "conll", "conll.conll");
    for name in ["conll", "jsonl", "parquet"] {
        let rows = fs::read_to_string(path.join(format!("{name}.conll"))).unwrap();
        let mut found: Vec<String> = Vec::new();
        for row in rows.lines().filter(|row| !row.is_empty()) {
            let (token, tag) = row.split_once('\t').unwrap();
            match tag.split_once('-') {
                Some(("B", _)) => found.push(token.to_owned()),
                Some(("I", _)) => {
                    let last = found.last_mut().unwrap();
                    *last = format!("{last} {token}");
                }
                _ => {}
            }
        }
        assert_eq!(found, wanted, "{name}");
    }
}

/// A text file with CRLF at the ends of lines: the offsets count from the start of each line.
#[test]
fn predicted_spans_of_a_text_file_count_from_its_lines() {
    let folder = prepared();
    let lines: Vec<&str> =
        TEXTS.iter().map(|(text, _)| *text).filter(|text| !text.contains('\r')).collect();
    fs::write(folder.path().join("letters.txt"), lines.join("\r\n") + "\r\n").unwrap();
    let bytes = tag(folder.path(), "letters.txt", "label-studio", "out.json");
    let found: Vec<Tagged> = objects("label-studio", &bytes).iter().map(label_studio).collect();
    assert_eq!(found, expected()[..3]);
}
