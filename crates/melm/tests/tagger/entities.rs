//! Unique valid entities, counted by an oracle that knows the corpus by heart.

use crate::support::{TEXT, corpus, settings, train};
use melm::experiment::Entities;
use melm::stage::Wish;
use melm::tagger::Head;
use melm_nn::device::Device;

#[test]
fn a_mention_is_valid_if_the_oracle_finds_it_with_the_same_label() {
    let gold = corpus(TEXT);
    let dir = tempfile::tempdir().unwrap();
    let oracle = train(dir.path(), &gold, &settings(Head::Crf), &mut |_| Wish::GoOn).unwrap();
    assert!(oracle.fitted.best.unwrap().value > 0.999);
    let count = |text: &str| {
        let sets = (&corpus(text), &gold);
        Entities::of(sets, &oracle.tagger, &Device::cpu(1)).unwrap()
    };
    // By hand: Ada Lovelace, London, Bonn, Berlin (twice), Konrad Zuse, Rotterdam, Madrid, Grace Hopper.
    assert_eq!(count(TEXT), Entities { unique: 8, valid: 8, valid_new: 0 });
    // Bonn is no person.
    let wrong = TEXT.replace("Bonn B-LOC", "Bonn B-PER");
    assert_eq!(count(&wrong), Entities { unique: 8, valid: 7, valid_new: 0 });
    // Berlin is wrong once and right once, in two labels.
    let wrong = TEXT.replacen("Berlin B-LOC", "Berlin B-PER", 1);
    assert_eq!(count(&wrong), Entities { unique: 9, valid: 8, valid_new: 0 });
}
