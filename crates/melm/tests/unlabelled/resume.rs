//! Tests that a run that is stopped while the panel is trained, or while it labels, ends with the same bytes.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use melm::Error;
use melm::augment::AugmentJob;
use melm::stage::{Control, Event};

use crate::support::{TEXT, TRAIN, augment, corpus, unlabelled, write_model};

/// Runs in a folder. Stops at the `stop`th progress event of `stage`.
fn run(job: &AugmentJob, dir: &Path, stage: &str, stop: Option<usize>) -> Result<usize, Error> {
    let mut n_events = 0;
    let mut observer = |name: &'static str, event: Event<'_>| {
        if name == stage && matches!(event, Event::Progress { .. }) {
            n_events += 1;
        }
        if Some(n_events) == stop { Control::Stop } else { Control::Save }
    };
    let folder = job.open_folder(dir, false, false)?;
    folder.run(&mut observer, &|| 0.0)?;
    Ok(n_events)
}

/// The content of the result files, and of the saved votes. Of `run.json`, only the part about the text: a resumed run
/// does not train the judge again, and does not know its scores.
fn results(dir: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut files = BTreeMap::new();
    for folder in [dir.to_path_buf(), dir.join(".stages/votes")] {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_file() {
                files.insert(path.display().to_string(), fs::read(&path).unwrap());
            }
        }
    }
    let record = dir.join("run.json").display().to_string();
    let whole: serde_json::Value = serde_json::from_slice(&files[&record]).unwrap();
    files.insert(record, whole["text"].to_string().into_bytes());
    let start = format!("{}/", dir.display());
    files.into_iter().map(|(name, bytes)| (name.replace(&start, ""), bytes)).collect()
}

fn assert_same(found: &BTreeMap<String, Vec<u8>>, expected: &BTreeMap<String, Vec<u8>>) {
    assert!(found.keys().eq(expected.keys()), "{:?}", found.keys());
    for (name, bytes) in expected {
        assert!(found[name] == *bytes, "the bytes of `{name}` differ");
    }
}

#[test]
fn a_run_stopped_in_the_panel_or_while_labelling_ends_with_the_same_bytes() {
    let dir = tempfile::tempdir().unwrap();
    let model = dir.path().join("model");
    write_model(&model);
    let job = augment(&model, corpus(TRAIN)).unlabelled(unlabelled(TEXT)).prepare().unwrap();
    let whole = dir.path().join("whole");
    let n_updates = run(&job, &whole, "panel", None).unwrap();
    assert_eq!(n_updates, 2 * 2 * 60);
    let expected = results(&whole);
    assert!(
        expected.contains_key("run.json") && expected.len() > 4 + 2 * 4,
        "{:?}",
        expected.keys()
    );
    // The first and the last update of a tagger, the middle of others, and the end of labelling of three taggers.
    let stops =
        [("panel", 1), ("panel", 60), ("panel", 95), ("panel", 170), ("label", 1), ("label", 3)];
    for (stage, stop) in stops {
        let stopped = dir.path().join(format!("{stage}-{stop}"));
        assert!(matches!(run(&job, &stopped, stage, Some(stop)), Err(Error::Interrupted)));
        let n_again = run(&job, &stopped, "panel", None).unwrap();
        assert_same(&results(&stopped), &expected);
        let n_done = if stage == "panel" { stop } else { 60 * stop };
        assert!(n_again <= n_updates - n_done, "{stage} {stop}: {n_again} updates again");
        assert!(!stopped.join(".stages/panel").exists());
    }
}

#[test]
fn a_training_of_other_drafts_is_not_resumed() {
    let dir = tempfile::tempdir().unwrap();
    let model = dir.path().join("model");
    write_model(&model);
    let job = |rounds: u32| {
        let run = augment(&model, corpus(TRAIN)).rounds(rounds).unlabelled(unlabelled(TEXT));
        run.prepare().unwrap()
    };
    let (whole, grown) = (dir.path().join("whole"), dir.path().join("grown"));
    run(&job(3), &whole, "panel", None).unwrap();
    assert!(matches!(run(&job(1), &grown, "panel", Some(30)), Err(Error::Interrupted)));
    run(&job(3), &grown, "panel", None).unwrap();
    assert_same(&results(&grown), &results(&whole));
}
