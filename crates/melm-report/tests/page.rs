//! Reports on folders that the tests write: hostile text, many drafts, folders without gold, experiments.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::path::Path;

use melm_report::{Error, Kind, MAX_BYTES, MAX_CANDIDATES, Origin, Report, Segment};
use serde_json::{Value, json};

/// A draft of gold sentence `source` ("Ada visited Bonn"), with another person.
fn draft(source: usize, round: u32, person: &str, verdict: &str) -> Value {
    json!({
        "origin": "draft", "source": source, "round": round, "seed": 1, "verdict": verdict,
        "tokens": [person, "visited", "Bonn"], "tags": ["B-PER", "O", "B-LOC"],
        "replaced": [
            { "mention": 0, "entity_type": "PER", "start": 0, "end": 1, "old": ["Ada"], "new": [person] }
        ],
        "probability": 0.25,
    })
}

/// Writes the folder of a run with `n_gold` gold sentences.
fn write_run(dir: &Path, n_gold: usize, drafts: &[Value]) {
    let gold = "Ada\tB-PER\nvisited\tO\nBonn\tB-LOC\n\n".repeat(n_gold);
    std::fs::write(dir.join("train.augmented.conll"), gold).unwrap();
    let run = json!({
        "melm": "0.1.0", "command": "augment", "method": "melm", "rounds": 1, "seed": 1, "key": "k",
        "train": { "file": "train.conll", "sentences": n_gold }, "dev": null,
    });
    std::fs::write(dir.join("run.json"), run.to_string()).unwrap();
    let lines: String = drafts.iter().map(|line| format!("{line}\n")).collect();
    std::fs::write(dir.join("drafts.jsonl"), lines).unwrap();
}

fn read(n_gold: usize, drafts: &[Value]) -> Report {
    let dir = tempfile::tempdir().unwrap();
    write_run(dir.path(), n_gold, drafts);
    Report::read(dir.path()).unwrap()
}

#[test]
fn hostile_text_is_harmless() {
    let hostile = [
        "</script><script>alert(1)</script>",
        "<img src=x onerror=alert(1)>",
        "<!--<script>",
        "\u{202e}drawkcab\u{2067}",
        "\" autofocus onfocus=\"alert(1)",
        "'; DROP TABLE drafts; --",
    ];
    let drafts: Vec<_> = hostile.iter().map(|text| draft(1, 1, text, "kept")).collect();
    let page = read(1, &drafts).html();
    // The page has two script elements: the data and the script.
    assert_eq!(page.to_lowercase().matches("<script").count(), 2);
    assert_eq!(page.to_lowercase().matches("</script").count(), 2);
    assert!(!page.contains("<img") && !page.contains("<!--"));
    assert!(!page.contains(['\u{202e}', '\u{2067}']));
    assert!(page.contains("⟨U+202E⟩drawkcab⟨U+2067⟩"));
    assert!(page.contains("&lt;img src=x onerror=alert(1)&gt;"));
    // The data is JSON and has the texts.
    let (before, rest) = page.split_once("type=\"application/json\">").unwrap();
    let (json, after) = rest.split_once("</script>").unwrap();
    let data: Value = serde_json::from_str(json).unwrap();
    assert_eq!(data["items"][0][8][1], hostile[0]);
    // Outside of the data, quotation marks are escaped, so that they cannot end an attribute.
    assert!(![before, after].iter().any(|part| part.contains("\" autofocus")));
    assert!(page.contains("default-src 'none'") && !page.contains("unsafe-inline"));
}

#[test]
fn hostile_types_and_folders_are_harmless() {
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path().join("<b>&\u{202e}");
    std::fs::create_dir(&folder).unwrap();
    let mut line = draft(1, 1, "Eve", "kept");
    line["tags"] = json!(["B-<i>x</i>", "O", "B-LOC"]);
    write_run(&folder, 1, &[line]);
    let page = Report::read(&folder).unwrap().html();
    assert!(!page.contains("<i>") && !page.contains("<b>"));
    assert!(!page.contains('\u{202e}'));
}

#[test]
fn drafts_are_differences_to_their_source() {
    let written = json!({
        "origin": "draft", "source": null, "round": 1, "seed": 1, "verdict": "kept",
        "tokens": ["In", "Oslo"], "tags": ["O", "B-LOC"], "replaced": [],
    });
    let report =
        read(2, &[draft(2, 1, "Eve", "kept"), draft(1, 1, "Ada", "repeats-source"), written]);
    let [new, same, written] = &report.candidates[..] else { panic!("three candidates") };
    let replaced = Segment::Replaced { entity_type: 0, text: "Eve".into(), old: "Ada".into() };
    assert_eq!(new.segments[0], replaced);
    assert_eq!((new.n_new, new.n_mentions, new.place.as_str()), (1, 2, "sentence 2"));
    assert_eq!(same.segments[0], Segment::Mention { entity_type: 0, text: "Ada".into() });
    assert_eq!((written.origin, written.source.is_none()), (Origin::Written, true));
    let person = &report.mentions[1];
    assert_eq!((person.entity_type.as_str(), person.gold, person.drafts), ("PER", 2, 1));
    assert_eq!((person.distinct_before, person.distinct_after, person.after), (1, 2, 3));
    assert_eq!(report.shown.by_type["PER"], 2);
    assert_eq!(report.shown.by_verdict["kept"], 2);
}

#[test]
fn a_folder_without_gold_shows_what_the_drafts_record() {
    let dir = tempfile::tempdir().unwrap();
    write_run(dir.path(), 1, &[draft(1, 1, "Eve", "kept")]);
    std::fs::remove_file(dir.path().join("train.augmented.conll")).unwrap();
    let report = Report::read(dir.path()).unwrap();
    assert!(report.notes[0].contains("gold sentences are not known"));
    let replaced = Segment::Replaced { entity_type: 0, text: "Eve".into(), old: "Ada".into() };
    assert_eq!(report.candidates[0].segments[0], replaced);
}

#[test]
fn ten_thousand_drafts_fit_and_more_are_sampled() {
    let context = ["word"; 12].join(" ");
    let drafts: Vec<_> = (0..10_500)
        .map(|n| draft(1 + n % 100, 1, &format!("Person {n} {context}"), "kept"))
        .collect();
    let report = read(100, &drafts);
    assert_eq!((report.shown.total, report.shown.shown), (10_500, MAX_CANDIDATES));
    assert_eq!(report.candidates.len(), MAX_CANDIDATES);
    let page = report.html();
    assert!(page.len() <= MAX_BYTES, "{}", page.len());
    assert!(page.contains("This page shows a sample of"));
    let short: Vec<_> =
        (0..10_000).map(|n| draft(1 + n % 100, 1, &format!("P{n}"), "kept")).collect();
    let page = read(100, &short).html();
    assert!(
        page.len() <= MAX_BYTES && !page.contains("This page shows a sample of"),
        "{}",
        page.len()
    );
}

#[test]
fn folders_that_are_no_run_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let error = || Report::read(dir.path()).unwrap_err();
    assert!(matches!(error(), Error::NotARun { .. }));
    std::fs::create_dir(dir.path().join(".unfinished")).unwrap();
    assert!(matches!(error(), Error::Unfinished { .. }));
    std::fs::write(dir.path().join("run.json"), "{\"command\": \"train\"}").unwrap();
    assert!(matches!(error(), Error::OtherCommand { .. }));
    write_run(dir.path(), 1, &[draft(1, 1, "Eve", "kept"), json!({})]);
    assert!(matches!(error(), Error::Line { line: 2, .. }));
    assert!(matches!(Report::read("nowhere").unwrap_err(), Error::Read { .. }));
}

/// A line of a ledger: a tagger of a method, scored on one fold.
fn cell(method: &str, fold: usize, correct: u64) -> Value {
    let score = json!({ "f1": 0.0, "by_type": { "PER": [100, 100, correct] } });
    json!({
        "key": format!("{method} {fold}"), "melm": "0.1.0", "n_train": 80, "updates": 300, "best_epoch": null,
        "language": format!("fold {fold}"), "size": 100, "draw": 1, "seed": 1, "method": method,
        "budget": "300 updates", "variant": "base", "test": { format!("fold {fold}"): score },
        "seconds": { "drafts": 1.0, "train": 2.0, "score": 0.5 }, "data": {}, "plan": "", "models": ["mini", "mini"],
        "device": "cpu",
    })
}

#[test]
fn a_trial_has_a_table_with_intervals_and_a_verdict() {
    let dir = tempfile::tempdir().unwrap();
    // The differences of melm to gold are 4, 6 and 5 points.
    let scores = [(1, 60, 64), (2, 50, 56), (3, 55, 60)];
    let lines: String = scores
        .iter()
        .flat_map(|(fold, gold, melm)| [cell("gold", *fold, *gold), cell("melm", *fold, *melm)])
        .map(|line| format!("{line}\n"))
        .collect();
    std::fs::write(dir.path().join("ledger.jsonl"), lines).unwrap();
    let command = json!({
        "command": "trial", "arguments": ["trial", "a.conll", "-o", "x"], "systems": ["melm"], "budget": "300 updates",
    });
    std::fs::write(dir.path().join("command.json"), command.to_string()).unwrap();
    let report = Report::read(dir.path()).unwrap();
    assert_eq!((report.kind, report.command.as_str()), (Kind::Trial, "melm trial a.conll -o x"));
    let row = report.tables[0].rows.iter().find(|row| row.system == "melm").unwrap();
    let difference = row.to_gold.as_ref().unwrap();
    // By hand: the standard deviation is 1, t(0.975, 2) = 4.3027, and the corrected error is sqrt(1/3 + 1/2).
    let margin = 4.302_652_729_749_462 * (1.0_f64 / 3.0 + 0.5).sqrt();
    assert!((difference.mean - 5.0).abs() < 1e-9);
    assert!((difference.low.unwrap() - (5.0 - margin)).abs() < 1e-9);
    assert_eq!(difference.verdict, "better");
    assert!(report.verdict.contains("melm"));
    let page = report.html();
    assert!(page.contains("+5.0 [+1.1, +8.9]"));
    assert!(!page.contains("Every draft and labelled sentence"));
}

#[test]
fn suspect_gold_shows_both_readings() {
    let dir = tempfile::tempdir().unwrap();
    write_run(dir.path(), 1, &[draft(1, 1, "Eve", "kept")]);
    let line = |p: f64| {
        json!({
            "source": 1, "fold": 2, "tokens": ["Ada", "visited", "Bonn"], "tags": ["B-PER", "O", "B-LOC"],
            "found": ["B-LOC", "O", "B-LOC"], "probability": 0.01, "found_probability": 0.7,
            "disagreements": [{ "token": 0, "wanted": "B-PER", "found": "B-LOC", "probability": p }],
        })
    };
    std::fs::write(dir.path().join("gold.jsonl"), format!("{}\n{}\n", line(0.5), line(0.003)))
        .unwrap();
    let report = Report::read(dir.path()).unwrap();
    let check = report.gold_check.as_ref().unwrap();
    assert_eq!(
        (check.summary.sentences, check.summary.contradicted, check.summary.suspect),
        (2, 2, 1)
    );
    let [one] = &check.suspects[..] else { panic!("one suspect") };
    assert!((one.contradiction - 0.997).abs() < 1e-6);
    assert_eq!(one.gold[0], Segment::Mention { entity_type: 0, text: "Ada".into() });
    assert_eq!(one.found[0], Segment::Mention { entity_type: 1, text: "Ada".into() });
    assert!(report.html().contains("contradicted with 99.7 %"));
    assert_eq!(report.json()["gold_check"]["suspect"], 1);
}
