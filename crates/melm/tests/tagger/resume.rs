//! Tests that a training run that is stopped at any step resumes and ends with the same bytes.

use std::fs;
use std::path::Path;

use crate::support::{TEXT, corpus, settings, train, train_in};
use melm::Error;
use melm::files::sha256;
use melm::stage::{Control, Event};
use melm::tagger::{TaggerHead, TrainedTagger};
use melm::training::EvaluationInterval;
use melm_nn::device::Device;

/// Returns the fingerprints of the files of a training run: the saved model and the metrics.
pub(crate) fn bytes(dir: &Path, trained: &TrainedTagger) -> Vec<String> {
    let out = dir.join("out");
    trained.tagger.save(&out).unwrap();
    let paths = [out.join("model.safetensors"), out.join("config.json")];
    let metrics = [dir.join("work/tagger/metrics.jsonl")];
    paths.iter().chain(&metrics).map(|path| sha256(&fs::read(path).unwrap())).collect()
}

#[test]
fn a_tagger_learns_its_corpus_and_keeps_the_best_epoch() {
    let corpus = corpus(TEXT);
    for head in [TaggerHead::Linear, TaggerHead::Crf] {
        let dir = tempfile::tempdir().unwrap();
        let trained =
            train(dir.path(), &corpus, &settings(head), &mut |_| Control::Continue).unwrap();
        let best = trained.outcome.best.unwrap();
        assert!(best.value > 0.99, "{head:?} {:?}", trained.outcome.epochs);
        assert_eq!(trained.outcome.n_steps, 90);
        let sentences: Vec<Vec<String>> = corpus
            .sentences()
            .iter()
            .map(|s| s.tokens().iter().map(ToString::to_string).collect())
            .collect();
        let on_tagged = &mut |at: usize, tagged: melm::tagger::TaggedSentence| {
            assert_eq!(tagged.tags, corpus.sentences()[at].tags());
            assert!(tagged.log_probability <= 1e-9);
        };
        trained.tagger.tag_each(&melm_nn::device::Device::cpu(1), &sentences, on_tagged).unwrap();
    }
}

#[test]
fn a_training_stopped_at_any_step_resumes_to_the_same_bytes() {
    let corpus = corpus(TEXT);
    let mut settings = settings(TaggerHead::Crf);
    settings.training.evaluate_every = EvaluationInterval::updates(4.try_into().unwrap());
    let whole = tempfile::tempdir().unwrap();
    let trained = train(whole.path(), &corpus, &settings, &mut |_| Control::Continue).unwrap();
    let expected = bytes(whole.path(), &trained);
    for stop in [1, 2, 3, 5, 6, 11, 17, 23, 89] {
        let dir = tempfile::tempdir().unwrap();
        let stopped = train(dir.path(), &corpus, &settings, &mut |event| match event {
            Event::Progress { done, .. } if done == stop => Control::Stop,
            _ => Control::Continue,
        });
        assert!(matches!(stopped, Err(Error::Interrupted)));
        let mut resumed_at = 0;
        let trained = train(dir.path(), &corpus, &settings, &mut |event| {
            if let Event::Resumed { done, .. } = event {
                resumed_at = done;
            }
            Control::Continue
        });
        assert_eq!(bytes(dir.path(), &trained.unwrap()), expected, "stopped after step {stop}");
        assert_eq!(resumed_at, stop);
    }
}

#[test]
fn a_training_stopped_within_a_step_or_an_evaluation_resumes_to_the_same_bytes() {
    let corpus = corpus(TEXT);
    let mut settings = settings(TaggerHead::Linear);
    settings.training.budget = "12 updates".parse().unwrap();
    settings.training.evaluate_every = EvaluationInterval::updates(4.try_into().unwrap());
    let whole = tempfile::tempdir().unwrap();
    let mut n_batches = 0;
    let trained = train(whole.path(), &corpus, &settings, &mut |event| {
        n_batches += usize::from(matches!(event, Event::Batch));
        Control::Continue
    });
    // One batch for each update, and one for each of the three evaluations: the batches 5, 10 and 15.
    assert_eq!(n_batches, 15);
    let expected = bytes(whole.path(), &trained.unwrap());
    for stop in 1..=n_batches {
        let dir = tempfile::tempdir().unwrap();
        let mut n_seen = 0;
        let stopped = train(dir.path(), &corpus, &settings, &mut |event| {
            n_seen += usize::from(matches!(event, Event::Batch));
            if n_seen == stop { Control::Stop } else { Control::Continue }
        });
        assert!(matches!(stopped, Err(Error::Interrupted)));
        assert_eq!(n_seen, stop);
        let trained = train(dir.path(), &corpus, &settings, &mut |_| Control::Continue);
        assert_eq!(bytes(dir.path(), &trained.unwrap()), expected, "stopped at batch {stop}");
    }
}

#[test]
fn a_training_without_a_folder_gives_the_same_tagger_and_writes_nothing() {
    let corpus = corpus(TEXT);
    let mut settings = settings(TaggerHead::Linear);
    settings.training.budget = "40 updates".parse().unwrap();
    let dir = tempfile::tempdir().unwrap();
    let weights = |work: Option<&str>| {
        let save = &mut |_: Event<'_>| Control::Save;
        let trained =
            train_in(dir.path(), work, &corpus, &settings, &Device::cpu(2), save).unwrap();
        let scored = trained.tagger.score(&melm_nn::device::Device::cpu(1), &corpus).unwrap();
        // The kept parameters are those with the best score on dev.
        assert_eq!(Some(scored.scores.micro().rates().f1), trained.outcome.best.map(|b| b.value));
        let out = dir.path().join("out");
        trained.tagger.save(&out).unwrap();
        sha256(&fs::read(out.join("model.safetensors")).unwrap())
    };
    let in_memory = weights(None);
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 2);
    assert_eq!(in_memory, weights(Some("work")));
}

#[test]
fn a_training_that_no_longer_improves_stops_after_its_patience() {
    let corpus = corpus(TEXT);
    let mut settings = settings(TaggerHead::Linear);
    settings.training.patience = 2;
    settings.training.evaluate_every = EvaluationInterval::Epochs(1.try_into().unwrap());
    settings.training.budget = "200 updates".parse().unwrap();
    let dir = tempfile::tempdir().unwrap();
    let outcome =
        train(dir.path(), &corpus, &settings, &mut |_| Control::Continue).unwrap().outcome;
    let best = outcome.best.unwrap();
    assert!(outcome.n_steps < 200);
    assert_eq!(outcome.epochs.last().unwrap().epoch, best.epoch + 2);
}
