//! Repairs arbitrary tag sequences in every scheme. The result must be valid and, except in IO, have the same mentions.
#![no_main]

use libfuzzer_sys::fuzz_target;
use melm_text::{EntityTypes, Scheme, mentions, repair};

const TAGS: [&str; 13] = [
    "O", "B-X", "I-X", "E-X", "S-X", "L-X", "U-X", "B-Y", "I-Y", "E-Y", "S-Y", "B", "I",
];

fuzz_target!(|bytes: &[u8]| {
    let mut types = EntityTypes::default();
    let tags: Vec<_> = bytes
        .iter()
        .map(|&byte| types.parse(TAGS[usize::from(byte) % TAGS.len()]).unwrap())
        .collect();
    for scheme in Scheme::ALL {
        let mut repaired = tags.clone();
        let n = repair(&mut repaired, scheme);
        assert_eq!(n, tags.iter().zip(&repaired).filter(|(a, b)| a != b).count());
        assert_eq!(scheme.violations(&repaired).count(), 0);
        assert_eq!(repair(&mut repaired, scheme), 0);
        if scheme.violations(&tags).next().is_none() {
            assert_eq!(n, 0, "valid tags must not change");
        }
        if scheme != Scheme::Io {
            assert!(mentions(&repaired).eq(mentions(&tags)));
        }
    }
});
