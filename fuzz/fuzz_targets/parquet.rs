//! Reads arbitrary bytes as a parquet file with tokens and tags.
#![no_main]

use std::sync::Once;

use libfuzzer_sys::fuzz_target;
use melm_text::parquet_file::{GivenNames, read_table};

/// Removes the hook of libFuzzer, which ends the process at every panic. The library turns panics of the `parquet` crate
/// into errors. A panic that the library does not catch still ends the process.
static NO_HOOK: Once = Once::new();

fuzz_target!(|bytes: &[u8]| {
    NO_HOOK.call_once(|| std::panic::set_hook(Box::new(|_| {})));
    let classes = ["O", "B-PER", "I-PER"].map(str::to_owned).to_vec();
    let given = GivenNames { classes: Some(&classes), ..GivenNames::default() };
    let _ = read_table(bytes.to_vec(), given);
});
