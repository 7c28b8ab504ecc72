//! Bounds on the rules of a `tokenizer.json`, which may come from anyone.
//!
//! A rule may replace one character by a long text, and each rule reads the output of the one before. Without bounds,
//! forty rules that double the letter `a` fill the memory.

use serde_json::Value;
use tokenizers::{NormalizerWrapper, PreTokenizerWrapper};

use super::charsmap;
use super::rules::ParseError;

/// The maximum number of normalizers and splitting rules. Published tokenizers have fewer than ten.
const MAX_RULES: usize = 64;

/// The maximum number of bytes that one rule inserts in one place. NFKC inserts at most 33.
const MAX_INSERTED: usize = 128;

/// The key of a normalization table, in base64.
const TABLE: &str = "precompiled_charsmap";

/// The maximum number of characters of a word that `WordPiece` splits. BERT has 100. The time grows with the square.
pub(super) const MAX_WORD_CHARACTERS: usize = 1_000;

/// The number of bytes to which the rules may extend a token of `n_bytes`.
pub(super) fn max_normalized(n_bytes: usize) -> usize {
    n_bytes.saturating_mul(16).saturating_add(1_024)
}

/// Checks the number of rules and the length of the texts that they insert.
pub(super) fn check_rules(
    normalizers: &[NormalizerWrapper],
    splitters: &[PreTokenizerWrapper],
) -> Result<(), ParseError> {
    if normalizers.len() + splitters.len() > MAX_RULES {
        return Err(ParseError::Unsupported(format!("a tokenizer of more than {MAX_RULES} rules")));
    }
    for normalizer in normalizers {
        let n_inserted = match normalizer {
            NormalizerWrapper::Replace(rule) => rule.content.len(),
            NormalizerWrapper::Prepend(rule) => rule.prepend.len(),
            NormalizerWrapper::Precompiled(table) => {
                let json = serde_json::to_value(table)?;
                longest_replacement(json[TABLE].as_str().unwrap_or_default())
            }
            _ => 0,
        };
        if n_inserted > MAX_INSERTED {
            let found = format!("a rule that inserts more than {MAX_INSERTED} bytes");
            return Err(ParseError::Unsupported(found));
        }
    }
    Ok(())
}

/// Checks normalization tables before the `tokenizers` crate uses them: it allocates the memory that they state, and panics
/// if they are damaged. `normalizer` may be any JSON value.
pub(super) fn check_tables(normalizer: &Value) -> Result<(), ParseError> {
    match normalizer {
        Value::Array(all) => all.iter().try_for_each(check_tables),
        Value::Object(keys) => {
            if let Some(table) = keys.get(TABLE).and_then(Value::as_str)
                && !charsmap::is_whole(&decode_base64(table))
            {
                return Err(ParseError::Unsupported("a damaged normalization table".to_owned()));
            }
            keys.values().try_for_each(check_tables)
        }
        _ => Ok(()),
    }
}

/// Returns the length of the longest text in a precompiled table, which is given in base64. The table has the size of
/// its trie in four bytes, the trie, and the texts, each followed by a zero byte.
fn longest_replacement(base64: &str) -> usize {
    let bytes = decode_base64(base64);
    let Some((size, rest)) = bytes.split_first_chunk::<4>() else { return 0 };
    let trie = usize::try_from(u32::from_le_bytes(*size)).unwrap_or(usize::MAX);
    let texts = rest.get(trie..).unwrap_or_default();
    texts.split(|byte| *byte == 0).map(<[u8]>::len).max().unwrap_or(0)
}

/// Decodes base64 that was decoded before without an error. Skips any other character.
fn decode_base64(text: &str) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(text.len() / 4 * 3);
    let (mut bits, mut n_bits) = (0u32, 0u32);
    for byte in text.bytes() {
        let value = match byte {
            b'A'..=b'Z' => byte - b'A',
            b'a'..=b'z' => byte - b'a' + 26,
            b'0'..=b'9' => byte - b'0' + 52,
            b'+' => 62,
            b'/' => 63,
            _ => continue,
        };
        bits = bits << 6 | u32::from(value);
        n_bits += 6;
        if n_bits >= 8 {
            n_bits -= 8;
            bytes.push((bits >> n_bits).to_le_bytes()[0]);
            bits &= (1 << n_bits) - 1;
        }
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_is_decoded() {
        // As printed by `base64`.
        assert_eq!(decode_base64("WsO8cmljaA=="), "Zürich".as_bytes());
        assert_eq!(decode_base64("/+8A"), [0xff, 0xef, 0x00]);
    }

    #[test]
    fn the_longest_text_of_a_table_is_found() {
        // A trie of four bytes, then the texts `a`, `bcd` and `e`.
        let table = "BAAAAAAAAABhAGJjZABlAA==";
        assert_eq!(decode_base64(table), b"\x04\0\0\0\0\0\0\0a\0bcd\0e\0");
        assert_eq!(longest_replacement(table), 3);
    }
}
