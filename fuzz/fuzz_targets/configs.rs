//! Parses arbitrary bytes as `config.json`. The values of an accepted configuration must be the same after writing and
//! parsing it again, and no other key may be lost. Numbers of other keys may change in their last bit, because
//! `serde_json` reads them so.
#![no_main]

use libfuzzer_sys::fuzz_target;
use melm_nn::config::Config;

fuzz_target!(|bytes: &[u8]| {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let path = "config.json".as_ref();
    let Ok(config) = Config::parse(path, text) else { return };
    let again = Config::parse(path, &config.to_json()).expect("our own output can be parsed");
    let is_kept = |key: &String| key == "torch_dtype" || again.extra.contains_key(key);
    assert!(config.extra.keys().all(is_kept), "{:?}", config.extra);
    assert_eq!(without_extra(again), without_extra(config));
});

fn without_extra(config: Config) -> Config {
    Config { extra: Default::default(), ..config }
}
