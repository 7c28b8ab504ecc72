//! Tests of saving and opening taggers.

use crate::support::{TEXT, corpus, settings, train};
use melm::Error;
use melm::stage::Control;
use melm::tagger::{TaggedSentence, TaggerHead, TaggerModel};
use melm_nn::device::Device;
use melm_text::Tag;

/// Tags two sentences. Returns the index, the tags as text, and the probabilities of each sentence.
fn tag(tagger: &TaggerModel) -> Vec<(usize, Vec<String>, Vec<f32>)> {
    let sentences = [vec!["Ada", "Zuse", "saw", "Bonn"], vec!["in", "Madrid"]];
    let mut all = Vec::new();
    let set = tagger.tags();
    let on_tagged = &mut |at, tagged: TaggedSentence| {
        let spell = |tag: &Tag| set.types().spell(*tag, set.scheme()).to_string();
        all.push((at, tagged.tags.iter().map(spell).collect(), tagged.probabilities));
    };
    tagger.tag_each(&Device::cpu(1), &sentences, on_tagged).unwrap();
    all
}

#[test]
fn a_tagger_gives_the_same_tags_after_saving_and_opening() {
    let corpus = corpus(TEXT);
    for head in [TaggerHead::Linear, TaggerHead::Crf] {
        let dir = tempfile::tempdir().unwrap();
        let mut settings = settings(head);
        settings.training.budget = "3 updates".parse().unwrap();
        let tagger =
            train(dir.path(), &corpus, &settings, &mut |_| Control::Continue).unwrap().tagger;
        let out = dir.path().join("out");
        tagger.save(&out).unwrap();
        let opened = TaggerModel::open(&out).unwrap();
        assert_eq!(tag(&opened), tag(&tagger));
        assert_eq!(opened.tags().names(), tagger.tags().names());
        // A tagger of another program does not have this file. The scheme is then guessed from its tags.
        std::fs::remove_file(out.join("tagger.json")).unwrap();
        assert_eq!(tag(&TaggerModel::open(&out).unwrap()), tag(&tagger));
    }
}

#[test]
fn a_model_without_tags_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    crate::support::pretrained(dir.path());
    assert!(matches!(TaggerModel::open(dir.path()), Err(Error::NotATagger { .. })));
}
