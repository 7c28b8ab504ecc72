//! `melm tag` and `melm augment` on texts with spans.

use std::fs;
use std::io::Write as _;
use std::path::Path;
use std::process::Stdio;

use serde_json::Value;

use crate::augment::FAST;
use crate::support::{TRAIN, done, folder, melm, run, tiny_folder};

/// Returns the text that the offsets of a span select, counted in code points.
fn select(text: &str, start: &Value, end: &Value) -> String {
    let number = |value: &Value| usize::try_from(value.as_u64().unwrap()).unwrap();
    text.chars().skip(number(start)).take(number(end) - number(start)).collect()
}

fn train(folder: &Path) {
    done(
        folder,
        "train train.conll --dev train.conll -o tagger --model model --preset best \
         --set tagger.learning_rate=0.02 --epochs 30",
    );
}

#[test]
fn raw_text_is_tagged_with_spans_over_the_original_text() {
    let folder = folder();
    train(folder.path());
    let text = "😀  Ada Lovelace wrote in London. Bonn is not Berlin.\n\nGrace Hopper spoke.\n";
    fs::write(folder.path().join("letters.txt"), text).unwrap();
    done(folder.path(), "tag tagger letters.txt --to label-studio -o tasks.json");
    let tasks = fs::read_to_string(folder.path().join("tasks.json")).unwrap();
    let tasks: Value = serde_json::from_str(&tasks).unwrap();
    assert_eq!(tasks.as_array().unwrap().len(), 2);
    assert_eq!(tasks[0]["data"]["text"], text.lines().next().unwrap());
    let mut found = Vec::new();
    for task in tasks.as_array().unwrap() {
        let text = task["data"]["text"].as_str().unwrap();
        for result in task["annotations"][0]["result"].as_array().unwrap() {
            let value = &result["value"];
            let surface = select(text, &value["start"], &value["end"]);
            assert_eq!(value["text"], surface);
            found.push(surface);
        }
    }
    // The tagger has learnt these sentences by heart.
    for name in ["Bonn", "Berlin", "Grace Hopper"] {
        assert!(found.iter().any(|surface| surface == name), "{name}: {found:?}");
    }

    fs::write(
        folder.path().join("raw.jsonl"),
        "{\"id\": 7, \"text\": \"Grace Hopper spoke.\", \"src\": \"x\"}\n",
    )
    .unwrap();
    done(folder.path(), "tag tagger raw.jsonl -o tagged.jsonl");
    let tagged = fs::read_to_string(folder.path().join("tagged.jsonl")).unwrap();
    let tagged: Value = serde_json::from_str(&tagged).unwrap();
    let span = &tagged["spans"][0];
    assert_eq!(
        (&tagged["id"], &tagged["src"], &span["label"]),
        (&7.into(), &"x".into(), &"PER".into())
    );
    assert_eq!(select("Grace Hopper spoke.", &span["start"], &span["end"]), "Grace Hopper");
}

#[test]
fn prose_on_standard_input_is_recognised() {
    let folder = folder();
    train(folder.path());
    let mut command = melm(folder.path(), "tag tagger -");
    let mut child = command.stdin(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(b"Grace Hopper spoke .\n").unwrap();
    let output = child.wait_with_output().unwrap();
    let rows = String::from_utf8(output.stdout).unwrap();
    assert_eq!(rows, "Grace\tB-PER\nHopper\tI-PER\nspoke\tO\n.\tO\n\n");
    let refused = run(folder.path(), "tag tagger train.conll --probabilities --to doccano");
    assert_eq!(refused.status.code(), Some(2));
}

#[test]
fn augment_writes_the_format_of_its_input_with_correct_offsets() {
    let folder = tiny_folder();
    fs::write(folder.path().join("fast.toml"), FAST).unwrap();
    assert!(TRAIN.contains("Lovelace"));
    for (format, file) in [
        ("label-studio", "train.json"),
        ("doccano", "train.jsonl"),
        ("prodigy", "train.jsonl"),
        ("gliner", "train.json"),
        ("brat", "train.ann"),
    ] {
        done(folder.path(), &format!("convert train.conll --to {format} -o {file} --force"));
        done(
            folder.path(),
            &format!(
                "augment {file} -o {format} --model model --config fast.toml --method mlm-entity \
                 --set filter.mode=off --rounds 2"
            ),
        );
        let ending = file.rsplit_once('.').unwrap().1;
        let out = format!("{format}/train.augmented.{ending}");
        // Reading compares the offsets with the text of each span where the file states it.
        let report = run(folder.path(), &format!("check --json {out}"));
        let report: Value = serde_json::from_slice(&report.stdout).unwrap();
        let file = &report["files"][0];
        assert_eq!(file["format"], format, "{report}");
        assert!(file["sentences"].as_u64().unwrap() >= 8, "{format}: {file}");
        let n_mentions: u64 =
            file["mentions"].as_object().unwrap().values().map(|n| n.as_u64().unwrap()).sum();
        assert!(n_mentions >= 12, "{format}: {file}");
    }
}
