//! The ids that spaCy gives to strings: numbers of its symbols, and 64-bit hashes of all other strings.

use std::collections::HashMap;
use std::sync::LazyLock;

/// The symbols of spaCy with their ids, made by `tools/make_spacy_symbols.py`. A few names end with a space.
const SYMBOLS: &str = include_str!("symbols.tsv");

/// The id of each symbol.
static IDS: LazyLock<HashMap<&'static str, u64>> = LazyLock::new(|| symbols().collect());

/// The symbol of each id.
static NAMES: LazyLock<HashMap<u64, &'static str>> =
    LazyLock::new(|| symbols().map(|(name, id)| (id, name)).collect());

fn symbols() -> impl Iterator<Item = (&'static str, u64)> {
    SYMBOLS.lines().map(|line| {
        let (id, name) = line.split_once('\t').expect("a line is an id, a tab and a name");
        (name, id.parse().expect("ids are numbers"))
    })
}

/// Returns the id of a string: that of the symbol with this name, or the hash of the string.
pub(super) fn string_id(text: &str) -> u64 {
    IDS.get(text).copied().unwrap_or_else(|| murmur_hash_64a(text.as_bytes(), 1))
}

/// Returns the name of a symbol, or `None` if `id` is not the id of a symbol.
pub(super) fn symbol_name(id: u64) -> Option<&'static str> {
    NAMES.get(&id).copied()
}

/// Returns the hash `MurmurHash64A` (Austin Appleby, public domain) of some bytes.
fn murmur_hash_64a(bytes: &[u8], seed: u64) -> u64 {
    const FACTOR: u64 = 0xc6a4_a793_5bd1_e995;
    const SHIFT: u32 = 47;
    let mut hash = seed ^ (bytes.len() as u64).wrapping_mul(FACTOR);
    let (blocks, rest) = bytes.as_chunks::<8>();
    for block in blocks {
        let mut block = u64::from_le_bytes(*block).wrapping_mul(FACTOR);
        block ^= block >> SHIFT;
        hash = (hash ^ block.wrapping_mul(FACTOR)).wrapping_mul(FACTOR);
    }
    if !rest.is_empty() {
        let mut last = [0; 8];
        last[..rest.len()].copy_from_slice(rest);
        hash = (hash ^ u64::from_le_bytes(last)).wrapping_mul(FACTOR);
    }
    hash ^= hash >> SHIFT;
    hash = hash.wrapping_mul(FACTOR);
    hash ^ (hash >> SHIFT)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_those_of_spacy() {
        // The hash of `coffee` is in the documentation of spaCy (Vocab, hashes and lexemes). The symbols and the hash
        // of an entity type are those of spaCy 3.8.
        assert_eq!(string_id("coffee"), 3_197_928_453_018_144_401);
        assert_eq!(string_id("PERSON"), 380);
        assert_eq!(string_id("ORG"), 383);
        assert_eq!(string_id("LOC"), 385);
        assert_eq!(string_id(""), 0);
        assert_eq!(symbol_name(380), Some("PERSON"));
        assert_eq!(symbol_name(string_id("coffee")), None);
    }
}
