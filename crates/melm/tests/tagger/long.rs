//! Tests of sentences that are longer than the model.

use crate::support::{LONGEST, TEXT, corpus, settings, train};
use melm::stage::Control;
use melm::tagger::{TaggerHead, Truncation};
use melm_nn::device::Device;

/// Returns a sentence of `n` tokens, each with one piece. Every seventh token is a mention.
fn long_text(n: usize) -> String {
    (0..n).map(|at| if at % 7 == 3 { "Bonn B-LOC\n" } else { "is O\n" }).collect()
}

#[test]
fn long_sentences_are_trained_on_and_tagged_in_windows() {
    let corpus = corpus(&format!("{TEXT}{}\n", long_text(100)));
    let dir = tempfile::tempdir().unwrap();
    let trained =
        train(dir.path(), &corpus, &settings(TaggerHead::Crf), &mut |_| Control::Continue).unwrap();
    let (n_sentences, n_tokens) = (6, 27 + 100);
    let expected = Truncation { n_sentences, n_tokens, n_windowed: 1, ..Truncation::default() };
    assert_eq!(trained.truncation, expected);
    let note = "1 of 6 sentences longer than the model's input: split into overlapping windows";
    assert_eq!(expected.notes(), [note]);
    assert!(trained.outcome.best.unwrap().value > 0.99);

    let sentences = [vec!["is"; 5], vec!["Bonn"; 200], vec!["is", "Bonn"]];
    let mut n_tags = [0; 3];
    let on_tagged =
        &mut |at: usize, tagged: melm::tagger::TaggedSentence| n_tags[at] = tagged.tags.len();
    let truncation = trained.tagger.tag_each(&Device::cpu(1), &sentences, on_tagged).unwrap();
    assert_eq!((n_tags, truncation.n_windowed), ([5, 200, 2], 1));
}

#[test]
fn too_long_mentions_are_left_out_and_too_long_tokens_are_cut() {
    let mention: String = (0..2 * LONGEST)
        .map(|at| format!("Bonn {}-LOC\n", if at == 0 { 'B' } else { 'I' }))
        .collect();
    let giant = "Bonn".repeat(100);
    let corpus = corpus(&format!("{TEXT}{mention}\n{giant} B-PER\nis O\n"));
    let dir = tempfile::tempdir().unwrap();
    let mut settings = settings(TaggerHead::Crf);
    settings.training.budget = "2 updates".parse().unwrap();
    let truncation =
        train(dir.path(), &corpus, &settings, &mut |_| Control::Continue).unwrap().truncation;
    assert_eq!((truncation.n_left_out, truncation.n_cut_tokens), (1, 1));
}
