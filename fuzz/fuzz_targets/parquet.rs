//! Reads arbitrary bytes as a parquet file with tokens and tags.
#![no_main]

use libfuzzer_sys::fuzz_target;
use melm_text::parquet_file::{GivenNames, read_table};

fuzz_target!(|bytes: &[u8]| {
    let classes = ["O", "B-PER", "I-PER"].map(str::to_owned).to_vec();
    let given = GivenNames { classes: Some(&classes), ..GivenNames::default() };
    let _ = read_table(bytes.to_vec(), given);
});
