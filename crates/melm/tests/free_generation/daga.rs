//! Tests of DAGA: it learns to write sentences like those of gold, and it rejects and counts invalid ones.

use std::collections::BTreeSet;
use std::path::Path;

use melm::Error;
use melm::augment::Drafts;
use melm::draft::{Verdict, read_lines};
use melm::methods::Method;
use melm::plan::Plan;
use melm::stage::{Control, Event};
use melm_text::Corpus;

use crate::support::{NONE, corpus, plan, run, text};

const SMALL: [&str; 6] = [
    "daga.embedding_size=16",
    "daga.hidden_size=32",
    "daga.dropout=0.1",
    "daga.learning_rate=0.02",
    "daga.budget=60 epochs",
    "generate.rounds=2",
];

fn small_plan(more: &[&str]) -> Plan {
    plan(Method::Daga, &[&SMALL[..], more].concat())
}

fn augment_with(dir: &Path, corpus: &Corpus, plan: &Plan, threads: usize) -> Drafts {
    run(dir, corpus, plan, NONE, threads, &mut |_, _| Control::Continue).unwrap()
}

#[test]
fn each_round_has_one_new_sentence_per_gold_sentence_with_a_mention_and_the_rest_is_counted() {
    let (corpus, plan, dir) = (corpus(&text()), small_plan(&[]), tempfile::tempdir().unwrap());
    let augmented = augment_with(dir.path(), &corpus, &plan, 1);
    assert_eq!(augmented.drafts.len(), 2 * 8);
    let funnel = augmented.summary(&corpus);
    assert_eq!(funnel.kept + funnel.repeat_draft, 16);
    assert!(funnel.dropped.total() > 0, "a model of eight sentences sometimes repeats gold");

    let gold: BTreeSet<_> = corpus.sentences().iter().flat_map(|s| s.tokens().to_vec()).collect();
    let mut seen = BTreeSet::new();
    for (record, sentence) in
        augmented.drafts.iter().filter(|r| r.verdict == Verdict::Kept).zip(augmented.kept())
    {
        assert_eq!((record.source, record.replacements.len()), (None, 0));
        assert!(sentence.mentions().next().is_some());
        assert!(corpus.scheme().violations(sentence.tags()).next().is_none());
        assert!(sentence.tokens().iter().all(|token| gold.contains(token)));
        assert!(corpus.sentences().iter().all(|s| s.tokens() != sentence.tokens()));
        assert!(seen.insert(sentence.tokens().to_vec()));
    }
    let start = "{\"origin\":\"draft\",\"source\":null,";
    assert!(augmented.lines.lines().all(|line| line.starts_with(start)));
    let again = read_lines("drafts.jsonl".as_ref(), &augmented.lines, &corpus).unwrap().drafts;
    let kept = again.iter().filter(|draft| draft.verdict.is_kept());
    assert!(kept.map(|draft| &draft.sentence).eq(augmented.kept()));
}

#[test]
fn a_trained_model_writes_the_pattern_of_its_corpus() {
    let (corpus, plan, dir) = (corpus(&text()), small_plan(&[]), tempfile::tempdir().unwrap());
    let augmented = augment_with(dir.path(), &corpus, &plan, 2);
    let in_pattern = augmented.drafts.iter().filter(|record| {
        let spell = |tag: &_| corpus.types().spell(*tag, corpus.scheme()).to_string();
        let tags: Vec<_> = record.sentence.tags().iter().map(spell).collect();
        tags == ["B-PER", "I-PER", "O", "B-LOC", "O"]
    });
    assert!(in_pattern.count() >= 12, "{:#?}", augmented.drafts);
}

#[test]
fn threads_and_interruptions_do_not_change_a_byte() {
    let (corpus, plan) = (corpus(&text()), small_plan(&[]));
    let whole = tempfile::tempdir().unwrap();
    let expected = augment_with(whole.path(), &corpus, &plan, 1);
    let two = tempfile::tempdir().unwrap();
    assert_eq!(augment_with(two.path(), &corpus, &plan, 2).lines, expected.lines);
    let dir = tempfile::tempdir().unwrap();
    for (stage, at) in [("daga", 7), ("daga", 33), ("generate", 9)] {
        let stopped = run(dir.path(), &corpus, &plan, NONE, 2, &mut |found, event| match event {
            Event::Progress { done, .. } if (found, done >= at) == (stage, true) => Control::Stop,
            _ => Control::Continue,
        });
        assert!(matches!(stopped, Err(Error::Interrupted)), "{stage} {at}");
    }
    let resumed = augment_with(dir.path(), &corpus, &plan, 1);
    assert_eq!((resumed.lines, resumed.dropped), (expected.lines, expected.dropped));
}

#[test]
fn tries_are_limited_and_all_written_sentences_are_counted() {
    let corpus = corpus(&text());
    let plan = small_plan(&[
        "daga.budget=1 update",
        "daga.tries=3",
        "daga.longest=20",
        "generate.rounds=1",
    ]);
    let dir = tempfile::tempdir().unwrap();
    let augmented = augment_with(dir.path(), &corpus, &plan, 2);
    assert!(augmented.drafts.len() < 8);
    assert_eq!(augmented.drafts.len() + augmented.dropped.total(), 3 * 8);
}
