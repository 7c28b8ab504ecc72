//! Checks the normalization tables of `SentencePiece`.
//!
//! A table has the number of bytes of its trie in four bytes, the trie, and texts that end with a zero byte. The trie is a
//! double array of 32-bit units (darts-clone). A unit has an offset to its children, the label of the edge that leads to it,
//! and a bit that says whether a value is stored with its children. A value is the position of a text.

/// The bit of a unit that says that its first child has a value.
const HAS_VALUE: u32 = 1 << 8;
/// The bits of a unit that must equal the byte of the edge to it. The highest bit marks values, which are no edges.
const LABEL: u32 = 1 << 31 | 0xff;

/// Returns true if a search in the table never leaves its trie or its texts. The `tokenizers` crate panics otherwise.
pub(super) fn is_whole(table: &[u8]) -> bool {
    let Some((size, rest)) = table.split_first_chunk::<4>() else { return false };
    let n_bytes = usize::try_from(u32::from_le_bytes(*size)).unwrap_or(usize::MAX) / 4 * 4;
    let Some((trie, texts)) = rest.split_at_checked(n_bytes) else { return false };
    let Ok(texts) = std::str::from_utf8(texts) else { return false };
    let (units, _) = trie.as_chunks::<4>();
    let units: Vec<u32> = units.iter().map(|unit| u32::from_le_bytes(*unit)).collect();
    has_whole_paths(&units, texts)
}

/// Follows every edge of the trie. Returns false if one leads out of the trie, or if a value is not the start of a text.
fn has_whole_paths(units: &[u32], texts: &str) -> bool {
    let Some(&root) = units.first() else { return false };
    // A damaged trie may have cycles.
    let mut is_known = vec![false; units.len()];
    let mut open = vec![offset(root)];
    while let Some(children) = open.pop() {
        match is_known.get_mut(children) {
            None => return false,
            Some(true) => continue,
            Some(is_known) => *is_known = true,
        }
        for byte in 1..=255_u8 {
            let at = children ^ usize::from(byte);
            let Some(&unit) = units.get(at) else { return false };
            if unit & LABEL != u32::from(byte) {
                continue;
            }
            let own_children = at ^ offset(unit);
            let value = units.get(own_children).map(|value| value & !(1 << 31));
            let is_text = |value: u32| texts.is_char_boundary(value as usize);
            if unit & HAS_VALUE != 0 && !value.is_some_and(is_text) {
                return false;
            }
            open.push(own_children);
        }
    }
    true
}

/// Returns the offset from a unit to its children.
fn offset(unit: u32) -> usize {
    (unit as usize >> 10) << ((unit & 1 << 9) >> 6)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Makes a table of units and texts.
    fn table(units: &[u32], texts: &[u8]) -> Vec<u8> {
        let n_bytes = u32::try_from(units.len() * 4).unwrap();
        let trie = units.iter().flat_map(|unit| unit.to_le_bytes());
        n_bytes.to_le_bytes().into_iter().chain(trie).chain(texts.iter().copied()).collect()
    }

    /// Returns a trie with one edge for `a`, whose value is `value`.
    fn one_edge(value: u32) -> Vec<u32> {
        // The children of the root are at 256 to 511, those of the edge at 0 to 255.
        let mut units = vec![0; 512];
        units[0] = 256 << 10;
        let at = 256 ^ usize::from(b'a');
        let to_children = u32::try_from(at ^ 1).unwrap() << 10;
        units[at] = to_children | HAS_VALUE | u32::from(b'a');
        units[1] = 1 << 31 | value;
        units
    }

    #[test]
    fn a_table_whose_paths_stay_inside_is_whole() {
        let texts = "\0\u{e4}b\0".as_bytes();
        assert!(is_whole(&table(&one_edge(1), texts)));
        for wrong_text in [2, 6, 1 << 30] {
            assert!(!is_whole(&table(&one_edge(wrong_text), texts)), "{wrong_text}");
        }
        let whole = table(&one_edge(1), texts);
        assert!(!is_whole(&whole[..whole.len() - texts.len() - 4]));
        assert!(!is_whole(&[]) && !is_whole(&[0; 4]) && !is_whole(&table(&[u32::MAX], texts)));
        // The texts are not UTF-8.
        assert!(!is_whole(&table(&one_edge(1), b"\0\xff\0")));
    }

    #[test]
    fn an_edge_out_of_the_trie_and_a_cycle_are_found() {
        let mut units = one_edge(1);
        units[256 ^ usize::from(b'a')] = 5_000 << 10 | u32::from(b'a');
        assert!(!is_whole(&table(&units, b"\0b\0")));
        let mut units = one_edge(1);
        let at = 256 ^ u32::from(b'a');
        // The children of the edge are those of the root.
        units[at as usize] = (at ^ 256) << 10 | u32::from(b'a');
        assert!(is_whole(&table(&units, b"\0b\0")));
    }
}
