//! Reads arbitrary text as the saved votes of a tagger, with the right checksum. Votes that fit a sentence must have
//! mentions inside it.
#![no_main]

use libfuzzer_sys::fuzz_target;
use melm::files::sha256;
use melm::self_training::parse_votes;

fuzz_target!(|text: &str| {
    let train = melm_fuzz::train();
    let _ = parse_votes(text, "key", train.types());
    let sealed = format!("key {}\n{text}", sha256(text.as_bytes()));
    let Some(votes) = parse_votes(&sealed, "key", train.types()) else { return };
    assert_eq!(votes.len(), text.lines().count());
    for vote in votes.iter().filter(|vote| vote.fits(5)) {
        assert!(
            vote.mentions
                .iter()
                .all(|mention| !mention.tokens.is_empty() && mention.tokens.end <= 5)
        );
    }
});
