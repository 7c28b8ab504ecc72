//! Parses arbitrary bytes as `config.json`. An accepted configuration must be the same after writing and parsing it
//! again.
#![no_main]

use libfuzzer_sys::fuzz_target;
use melm_nn::config::Config;

fuzz_target!(|bytes: &[u8]| {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let path = "config.json".as_ref();
    let Ok(config) = Config::parse(path, text) else { return };
    let again = Config::parse(path, &config.to_json()).expect("our own output can be parsed");
    assert_eq!(again.to_json(), config.to_json());
});
