//! Checks the unlabelled text of the example: its sentences are not in the other files of the quick start.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::HashSet;
use std::path::Path;

use melm_text::{
    Corpus, KnownSentences, LeftOut, Sentence, SentenceRole, TextFormat, TextOptions, Tokenizer,
    TokenizerRules, UnlabelledText,
};

fn corpus(name: &str) -> Corpus {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/politics");
    Corpus::open(folder.join(name)).unwrap()
}

fn text() -> UnlabelledText {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/politics/text.conll");
    let rules = TokenizerRules::from_corpus(&corpus("train-100.conll"));
    UnlabelledText::open(path, &TextOptions::with_tokenizer(Tokenizer::new(rules))).unwrap()
}

#[test]
fn every_sentence_is_one_of_train_or_dev_with_the_same_tokens() {
    let (train, dev, text) = (corpus("train.conll"), corpus("dev.conll"), text());
    let known: HashSet<_> =
        train.sentences().iter().chain(dev.sentences()).map(Sentence::tokens).collect();
    // 100 of the 200 sentences of train and 441 of the 541 of dev, without the one that test has too.
    assert_eq!(text.sentences().len(), 540);
    assert!(text.sentences().iter().all(|one| known.contains(one.tokens())));
    assert_eq!(text.files()[0].format, TextFormat::Conll);
}

#[test]
fn no_sentence_is_in_train_100_dev_100_or_test() {
    let known = KnownSentences::default()
        .with_corpus(SentenceRole::Gold, &corpus("train-100.conll"))
        .with_corpus(SentenceRole::Dev, &corpus("dev-100.conll"))
        .with_corpus(SentenceRole::HeldOut, &corpus("test.conll"));
    let (_, left_out) = text().without(&known);
    // Dev has one sentence twice.
    assert_eq!(left_out, LeftOut { repeated: 1, ..LeftOut::default() });
}
