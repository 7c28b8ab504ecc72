//! Picking sentences: known sentences are left out, the suggestions are those of the majority, and a run resumes.

use melm::pick::PickedSentence;
use melm::stage::{Control, Event};
use melm::text::{Corpus, Format, LeftOut, ReadOptions, Source};
use melm::{Error, Pick};
use melm_nn::device::Device;

use crate::support::{TEXT, TRAIN, corpus, unlabelled, write_model};

fn pick(model: &std::path::Path) -> Pick {
    let edits = [
        "tagger.batch_size=4",
        "tagger.learning_rate=0.02",
        "self_training.panel=3",
        "self_training.budget=20 updates",
    ];
    let pick = Pick::new(corpus(TRAIN), unlabelled(TEXT))
        .held_out(unlabelled("Konrad Zuse spoke in Bonn.\n"))
        .model(&model.display().to_string())
        .device(Device::cpu(2));
    edits.iter().fold(pick, |pick, edit| pick.set(edit))
}

#[test]
fn picked_sentences_are_new_and_have_the_tags_of_the_majority() {
    let dir = tempfile::tempdir().unwrap();
    write_model(dir.path());
    let picked = pick(dir.path()).n(3).run().unwrap();
    assert_eq!(picked.left_out(), LeftOut { gold: 1, dev: 0, held_out: 1, repeated: 1 });
    let summary = picked.summary();
    assert_eq!((summary.sentences, summary.picked, summary.too_long), (4, 3, 0));
    for PickedSentence { sentence, n_taggers, proposed, .. } in picked.sentences() {
        assert_eq!(*n_taggers, 3);
        let expected = proposed.iter().filter(|one| one.votes >= 2).map(|one| one.mention.clone());
        assert!(sentence.mentions().eq(expected));
    }
    let values = picked.sentences().iter().map(|one| one.score * (1.0 - one.similarity));
    let values: Vec<f64> = values.collect();
    assert!(values.is_sorted_by(|a, b| a >= b), "{values:?}");
    // A larger batch begins with the same sentences.
    let one = pick(dir.path()).n(1).run().unwrap();
    assert_eq!(one.sentences(), &picked.sentences()[..1]);
    assert_eq!(pick(dir.path()).n(99).run().unwrap().sentences().len(), 4);
}

#[test]
fn the_files_have_the_format_of_the_training_set_or_another_and_a_line_for_each_vote() {
    let dir = tempfile::tempdir().unwrap();
    write_model(dir.path());
    let picked = pick(dir.path()).n(2).run().unwrap();
    let out = dir.path().join("next.conll");
    let paths = picked.write(&out, None).unwrap();
    assert_eq!(paths, [out.clone(), dir.path().join("next.conll.pick.jsonl")]);
    let read = Corpus::open(&out).unwrap();
    for (found, expected) in read.sentences().iter().zip(picked.sentences()) {
        assert_eq!(found.tokens(), expected.sentence.tokens());
        assert_eq!(found.mentions().count(), expected.sentence.mentions().count());
    }
    let lines = std::fs::read_to_string(&paths[1]).unwrap();
    let lines: Vec<serde_json::Value> =
        lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines.len(), 2);
    assert_eq!((&lines[1]["rank"], &lines[1]["panel"]), (&2.into(), &3.into()));
    assert_eq!(lines[0]["file"], "text.txt");
    // Label Studio gets predictions with the spacing of the text, which are no annotations until a person confirms them.
    let format: Format = "label-studio".parse().unwrap();
    let bytes = picked.to_files(format).unwrap().remove(0).bytes;
    let tasks: serde_json::Value = serde_json::from_slice(&bytes).unwrap();
    let source = picked.source(&picked.sentences()[0]);
    assert_eq!(tasks[0]["data"]["text"], source.text().unwrap());
    assert_eq!(tasks[0]["data"]["rank"], 1);
    let results = tasks[0]["predictions"][0]["result"].as_array().unwrap();
    assert_eq!(results.len(), picked.sentences()[0].sentence.mentions().count());
    let source = Source::from_text("tasks.json", String::from_utf8(bytes).unwrap());
    assert!(Corpus::read(&source, &ReadOptions::default()).is_err(), "it has no labelled text yet");
    let all = ReadOptions { keeps_unlabelled: true, ..ReadOptions::default() };
    assert_eq!(Corpus::read(&source, &all).unwrap().sentences().len(), 2);
}

#[test]
fn a_stopped_run_resumes_and_picks_the_same() {
    let dir = tempfile::tempdir().unwrap();
    let model = dir.path().join("model");
    write_model(&model);
    let job = pick(&model).n(3).prepare().unwrap();
    let state = dir.path().join("next.conll.unfinished");
    let mut n_trained = 0;
    let mut stop_in_second = |stage: &'static str, event: Event<'_>| {
        if stage == "label" && matches!(event, Event::Progress { .. }) {
            n_trained += 1;
        }
        if n_trained == 2 { Control::Stop } else { Control::Save }
    };
    let folder = job.open_folder(&state, false).unwrap();
    assert!(matches!(folder.run(&mut stop_in_second), Err(Error::Interrupted)));
    // Another number of sentences uses the same votes, another seed does not.
    assert!(pick(&model).n(1).prepare().unwrap().open_folder(&state, false).is_ok());
    let other = pick(&model).seed(2).prepare().unwrap();
    assert!(matches!(other.open_folder(&state, false), Err(Error::Occupied { .. })));
    let (mut n_resumed, mut n_whole) = (0, 0);
    let mut count = |stage: &'static str, _: Event<'_>| {
        n_resumed += usize::from(stage == "label");
        Control::Continue
    };
    let folder = job.open_folder(&state, false).unwrap();
    let resumed = folder.run(&mut count).unwrap();
    let mut count = |stage: &'static str, _: Event<'_>| {
        n_whole += usize::from(stage == "label");
        Control::Continue
    };
    assert_eq!(resumed.sentences(), job.run(&mut count).unwrap().sentences());
    assert_eq!(3 * n_resumed, 2 * n_whole, "the first of the three taggers has voted before");
    folder.remove().unwrap();
    assert!(!state.exists());
}
