//! Labels from elsewhere: their origin, their counts by source, and what is refused.

use std::path::Path;

use melm::augment::{AugmentJob, Silver, SilverError};
use melm::draft::Verdict;
use melm::text::LeftOut;
use melm::{Augment, Corpus, Error};

use crate::support::{TEXT, TRAIN, augment, corpus, unlabelled, write_model};

/// One sentence of the training set, one of the text, one that is new.
const LLM: &str = "\
Grace B-PER\nHopper I-PER\nspoke O\n. O\n\n\
London B-LOC\nis O\nnot O\nBonn O\n. O\n\n\
Alan B-PER\nTuring I-PER\nspoke O\n. O\n\n";

fn with_silver(model: &Path, silver: Silver, edit: &str) -> Augment {
    let edits = ["method=gold", "self_training.passes=1", edit];
    let run = augment(model, corpus(TRAIN)).silver(silver);
    edits.iter().fold(run, |run, edit| run.set(edit))
}

/// Returns the values of a key in the lines of the text.
fn values(lines: &str, key: &str) -> Vec<serde_json::Value> {
    let lines = lines.lines().map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap());
    lines.map(|line| line[key].clone()).collect()
}

#[test]
fn silver_is_checked_counted_by_source_and_left_out_if_known() {
    let dir = tempfile::tempdir().unwrap();
    write_model(dir.path());
    let rules = Silver::new("rules", corpus("Alan O\nTuring O\nspoke O\n. O\n\nBonn B-LOC\n"));
    let run = with_silver(dir.path(), Silver::new("llm", corpus(LLM)), "silver.agreement=off");
    let augmented = run.silver(rules).unlabelled(unlabelled(TEXT)).run().unwrap();
    let outcome = augmented.text().unwrap();
    let counts: Vec<_> = outcome
        .silver
        .iter()
        .map(|one| (one.name.as_str(), one.left_out.gold, one.left_out.repeated, one.summary.kept))
        .collect();
    assert_eq!(counts, [("llm", 1, 0, 2), ("rules", 0, 1, 1)]);
    // The text has one sentence of the training set, one that it repeats and one that is in the silver file.
    assert_eq!(outcome.left_out, LeftOut { gold: 2, dev: 0, held_out: 0, repeated: 3 });
    let origins = values(&outcome.lines, "origin");
    assert_eq!(origins[..3], ["silver:llm", "silver:llm", "silver:rules"]);
    assert!(origins.len() > 3 && origins[3..].iter().all(|origin| origin == "text"));
    assert_eq!(values(&outcome.lines, "given")[0][3], "O");
    // Without a check, the given tags are kept, also the wrong one.
    let first = &outcome.labelled.candidates[0];
    assert_eq!((first.verdict, first.sentence.mentions().count()), (Verdict::Kept, 1));
    let out = dir.path().join("out");
    augmented.write(&out).unwrap();
    let text = std::fs::read_to_string(out.join("drafts.jsonl")).unwrap();
    let gold = augmented.gold();
    let read = melm::draft::read_lines(&out, &text, gold).unwrap();
    assert_eq!(read.text.len(), origins.len());
}

#[test]
fn silver_is_part_of_the_identity_of_a_run() {
    let dir = tempfile::tempdir().unwrap();
    let model = dir.path().join("model");
    write_model(&model);
    let job = |text: &str, edit: &str| -> AugmentJob {
        with_silver(&model, Silver::new("llm", corpus(text)), edit).prepare().unwrap()
    };
    let out = dir.path().join("out");
    let mut stop = |_: &'static str, _: melm::stage::Event<'_>| melm::stage::Control::Stop;
    let first = job(LLM, "silver.votes=0.4");
    let result = first.open_folder(&out, false, false).unwrap().run(&mut stop, &|| 0.0);
    assert!(matches!(result, Err(Error::Interrupted)));
    assert!(job(LLM, "silver.votes=0.4").open_folder(&out, false, false).is_ok());
    for other in [
        job(&LLM.replace("Bonn O", "Bonn B-LOC"), "silver.votes=0.4"),
        job(LLM, "silver.votes=0.6"),
    ] {
        assert!(matches!(other.open_folder(&out, false, false), Err(Error::Occupied { .. })));
    }
}

#[test]
fn other_types_are_refused_or_dropped_and_languages_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    write_model(dir.path());
    let text = LLM.replace("B-LOC", "B-TOWN");
    let silver = || Silver::new("llm", corpus(&text));
    let prepare =
        |silver: Silver| with_silver(dir.path(), silver, "silver.agreement=off").prepare();
    let error = prepare(silver()).err().unwrap();
    assert!(
        matches!(&error, Error::Silver(SilverError::OtherType { entity_type, .. }) if entity_type == "TOWN"),
        "{error}"
    );
    let run = with_silver(dir.path(), silver().dropping_other_types(), "silver.agreement=off");
    let augmented = run.run().unwrap();
    let outcome = &augmented.text().unwrap().silver[0];
    assert_eq!((outcome.n_dropped, outcome.summary.kept, outcome.summary.no_mention), (1, 1, 1));
    let en = Corpus::from_languages([("en", &corpus(TRAIN))]);
    let run = augment(dir.path(), en).silver(Silver::new("llm", corpus(LLM)));
    assert!(matches!(run.prepare().err(), Some(Error::Silver(SilverError::Languages { .. }))));
}
