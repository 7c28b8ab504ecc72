//! Unlabelled text in a run of the library: what is left out, the order of the result, languages, and resuming.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod pick;
mod resume;
mod silver;
mod support;

use melm::draft::Verdict;
use melm::text::{LeftOut, UnlabelledText};
use melm::{Corpus, Error};

use support::{TEXT, TRAIN, augment, corpus, unlabelled, write_model};

/// Returns the tokens of the sentences of a corpus, joined by spaces.
fn texts(corpus: &Corpus) -> Vec<String> {
    let text = |sentence: &melm::text::Sentence| {
        let tokens: Vec<_> = sentence.tokens().iter().map(ToString::to_string).collect();
        tokens.join(" ")
    };
    corpus.sentences().iter().map(text).collect()
}

#[test]
fn the_corpus_is_gold_then_drafts_then_text_without_known_sentences() {
    let dir = tempfile::tempdir().unwrap();
    write_model(dir.path());
    let train = corpus(TRAIN);
    let held_out = unlabelled("Konrad Zuse spoke in Bonn.\n");
    let run = augment(dir.path(), train.clone()).unlabelled(unlabelled(TEXT)).held_out(held_out);
    let augmented = run.run().unwrap();
    let outcome = augmented.text().unwrap();
    assert_eq!(outcome.left_out, LeftOut { gold: 1, dev: 0, held_out: 1, repeated: 1 });
    assert_eq!(outcome.labelled.candidates.len(), 4);
    let kept = outcome.labelled.candidates.iter().filter(|one| one.verdict == Verdict::Kept);
    let kept: Vec<_> = kept.map(|one| one.sentence.clone()).collect();
    assert!(!kept.is_empty());
    let drafts = augmented.drafts().iter().filter(|draft| draft.verdict == Verdict::Kept);
    let drafts: Vec<_> = drafts.map(|draft| draft.sentence.clone()).collect();
    let all: Vec<_> = train.sentences().iter().chain(&drafts).chain(&kept).cloned().collect();
    assert_eq!(augmented.corpus().sentences(), all);
    assert_eq!(outcome.lines.lines().count(), 4);
    assert!(outcome.lines.contains("\"file\":\"text.txt\",\"line\":5,"), "{}", outcome.lines);
}

#[test]
fn a_text_may_have_languages_that_the_training_set_does_not_have() {
    let dir = tempfile::tempdir().unwrap();
    write_model(dir.path());
    let en = Corpus::from_languages([("en", &corpus(TRAIN))]);
    let of = |text: &str, code: &str| unlabelled(text).with_language(code);
    let run = augment(dir.path(), en)
        .unlabelled(of("London is not Bonn.\nAda Lovelace spoke.\n", "de"))
        .unlabelled(of("Grace Hopper lived in Bonn.\n", "nl"));
    let augmented = run.run().unwrap();
    let corpus = augmented.corpus();
    let codes: Vec<_> = corpus.languages().iter().map(|part| &*part.code).collect();
    assert_eq!(codes, ["en", "de", "nl"]);
    for (at, sentence) in augmented.text().unwrap().labelled.candidates.iter().enumerate() {
        let expected = if at < 2 { 1 } else { 2 };
        assert_eq!(sentence.sentence.language().unwrap().index(), expected);
    }
    let out = dir.path().join("out");
    let paths = augmented.write(&out).unwrap();
    let names: Vec<_> = paths.iter().map(|path| path.file_name().unwrap().to_owned()).collect();
    let expected = ["en", "de", "nl"].map(|code| format!("train.augmented.{code}.conll").into());
    assert_eq!(names, expected as [std::ffi::OsString; 3]);
    assert!(std::fs::read_to_string(&paths[0]).unwrap().starts_with(TRAIN));
    let de = std::fs::read_to_string(&paths[1]).unwrap();
    let n_de =
        augmented.text().unwrap().labelled.kept().filter(|s| s.language().unwrap().index() == 1);
    assert_eq!(de.split("\n\n").filter(|block| !block.is_empty()).count(), n_de.count());
}

#[test]
fn wrong_texts_are_refused_before_the_run() {
    let dir = tempfile::tempdir().unwrap();
    write_model(dir.path());
    let train = corpus(TRAIN);
    let en = Corpus::from_languages([("en", &train)]);
    let prepare = |train: &Corpus, text: UnlabelledText| {
        let prepared = augment(dir.path(), train.clone()).unlabelled(text).prepare();
        prepared.err().unwrap()
    };
    let text = unlabelled(TEXT);
    assert!(matches!(
        prepare(&train, text.clone().with_language("de")),
        Error::GoldWithoutLanguage { language, .. } if language == "de"
    ));
    assert!(
        matches!(prepare(&en, text), Error::TextWithoutLanguage { file } if file == "text.txt")
    );
    assert!(matches!(prepare(&train, UnlabelledText::default()), Error::NoText));
    let known = unlabelled("Ada Lovelace wrote in London.\n");
    assert!(matches!(prepare(&train, known), Error::KnownText));
    assert_eq!(texts(&train)[0], "Ada Lovelace wrote in London .");
}

#[test]
fn an_estimate_counts_every_tagger_of_the_panel() {
    let dir = tempfile::tempdir().unwrap();
    write_model(dir.path());
    let estimate = |edits: &[&str]| {
        let run = augment(dir.path(), corpus(TRAIN)).unlabelled(unlabelled(TEXT));
        let run = edits.iter().fold(run, |run, edit| run.set(edit));
        // This clock makes the speed arbitrary, so only shares can be compared.
        let now = std::cell::Cell::new(0.0);
        let estimate = run.prepare().unwrap().estimate(&|| now.replace(now.get() + 1.0));
        let seconds = |title: &str| {
            let stage = estimate.stages.iter().find(|stage| stage.title == title).unwrap();
            stage.seconds / estimate.stages[0].seconds
        };
        [seconds("training the panel"), seconds("labelling the text")]
    };
    let two = estimate(&["self_training.panel=2"]);
    let four = estimate(&["self_training.panel=4"]);
    for (two, four) in two.into_iter().zip(four) {
        assert!((four / two - 2.0).abs() < 1e-6, "{two} {four}");
    }
    let longer = estimate(&["self_training.budget=120 updates"]);
    // The evaluations on dev take the same time, because their number does not depend on the budget.
    assert!(longer[0] / two[0] > 1.5 && longer[0] / two[0] < 2.0, "{} {}", longer[0], two[0]);
    assert!((longer[1] / two[1] - 1.0).abs() < 1e-6);
    // In the second of two passes, a tagger labels half of the text, and does not learn from this half.
    let folds = estimate(&["self_training.panel=4", "self_training.folds=2"]);
    assert!((folds[1] / four[1] - 0.75).abs() < 1e-6, "{} {}", folds[1], four[1]);
}

#[test]
fn with_folds_only_some_taggers_vote_on_a_sentence_in_the_second_pass() {
    let dir = tempfile::tempdir().unwrap();
    write_model(dir.path());
    let labelled = |folds: &str| {
        let run = augment(dir.path(), corpus(TRAIN)).unlabelled(unlabelled(TEXT));
        let run = run.set("self_training.panel=4").set(&format!("self_training.folds={folds}"));
        run.run().unwrap().text().unwrap().labelled.clone()
    };
    let (all, half) = (labelled("1"), labelled("2"));
    // The first pass has no folds, so it is the same.
    assert_eq!(all.passes[0], half.passes[0]);
    assert!(all.candidates.iter().all(|one| one.n_taggers == 4 && one.probabilities.len() == 4));
    assert!(half.candidates.iter().all(|one| one.n_taggers == 2 && one.probabilities.len() == 2));
    let run = augment(dir.path(), corpus(TRAIN)).unlabelled(unlabelled(TEXT));
    let error = run.set("self_training.folds=3").run().err().unwrap().to_string();
    assert!(
        error.contains("`self_training.folds` must be 1, or a divisor of the panel (2)"),
        "{error}"
    );
}
