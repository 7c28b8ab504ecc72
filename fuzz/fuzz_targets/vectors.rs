//! Reads arbitrary bytes as word vectors. Accepted vectors must have the right length and finite numbers.
#![no_main]

use libfuzzer_sys::fuzz_target;
use melm_text::WordVectors;

fuzz_target!(|bytes: &[u8]| {
    let needed = ["a", "b", "the"].into();
    if let Ok(vectors) = WordVectors::read("fuzz", bytes, &needed) {
        for vector in ["a", "b", "the"].iter().filter_map(|word| vectors.get(word)) {
            assert_eq!(vector.len(), vectors.dimension());
            assert!(vector.iter().all(|number| number.is_finite()));
        }
    }
});
