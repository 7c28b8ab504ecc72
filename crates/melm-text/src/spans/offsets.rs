//! Offsets in a text, counted in different units, and their conversion to bytes and back.

use std::fmt;
use std::str::FromStr;

use thiserror::Error;
use unicode_segmentation::UnicodeSegmentation;

/// A unit in which offsets in a text are counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OffsetUnit {
    /// Bytes of UTF-8, as in Rust strings.
    Byte,
    /// Unicode code points, as in Python strings.
    CodePoint,
    /// Code units of UTF-16, as in Java and JavaScript strings.
    Utf16,
    /// Extended grapheme clusters: characters as a reader sees them.
    Grapheme,
}

impl OffsetUnit {
    /// All units.
    pub const ALL: [Self; 4] = [Self::CodePoint, Self::Utf16, Self::Grapheme, Self::Byte];

    /// The name that command-line options use.
    pub fn name(self) -> &'static str {
        match self {
            Self::Byte => "bytes",
            Self::CodePoint => "code-points",
            Self::Utf16 => "utf16",
            Self::Grapheme => "graphemes",
        }
    }

    /// Returns the length of `text` in this unit.
    pub fn measure(self, text: &str) -> usize {
        match self {
            Self::Byte => text.len(),
            Self::CodePoint => text.chars().count(),
            Self::Utf16 => text.encode_utf16().count(),
            Self::Grapheme => text.graphemes(true).count(),
        }
    }
}

impl fmt::Display for OffsetUnit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Byte => "bytes of UTF-8",
            Self::CodePoint => "code points",
            Self::Utf16 => "UTF-16 units",
            Self::Grapheme => "grapheme clusters",
        })
    }
}

impl FromStr for OffsetUnit {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        let found = Self::ALL.into_iter().find(|unit| unit.name() == name);
        found.ok_or_else(|| "expected code-points, utf16, graphemes or bytes".into())
    }
}

/// The reason why an offset is not a place in a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum OffsetFault {
    /// The offset is after the end of the text.
    #[error("offset {offset} is after the end of the text, which has {length} {unit}")]
    AfterEnd {
        /// The offset.
        offset: usize,
        /// The length of the text.
        length: usize,
        /// The unit of both.
        unit: OffsetUnit,
    },
    /// The offset is inside a character.
    #[error("offset {offset}, counted in {unit}, is inside a character")]
    InsideCharacter {
        /// The offset.
        offset: usize,
        /// Its unit.
        unit: OffsetUnit,
    },
}

/// The byte of each offset of a text. It converts offsets to bytes and back.
///
/// ```
/// use melm_text::{OffsetMap, OffsetUnit};
/// let map = OffsetMap::new("😀 Köln", OffsetUnit::Utf16);
/// assert_eq!(map.to_byte(3), Ok(5));
/// assert_eq!(map.from_byte(5), Ok(3));
/// assert!(map.to_byte(1).is_err()); // inside the emoji
/// ```
#[derive(Debug, Clone)]
pub struct OffsetMap {
    unit: OffsetUnit,
    /// The byte at each offset, from 0 to the length of the text. [`INSIDE`] if the offset is inside a character.
    bytes: Vec<usize>,
}

/// Stands for an offset inside a character.
const INSIDE: usize = usize::MAX;

impl OffsetMap {
    /// Makes the map of `text` for offsets in `unit`.
    pub fn new(text: &str, unit: OffsetUnit) -> Self {
        let mut bytes = Vec::with_capacity(text.len() + 1);
        match unit {
            OffsetUnit::Grapheme => bytes.extend(text.grapheme_indices(true).map(|(at, _)| at)),
            OffsetUnit::CodePoint => bytes.extend(text.char_indices().map(|(at, _)| at)),
            OffsetUnit::Utf16 | OffsetUnit::Byte => {
                for (at, c) in text.char_indices() {
                    let n = if unit == OffsetUnit::Byte { c.len_utf8() } else { c.len_utf16() };
                    bytes.push(at);
                    bytes.extend(std::iter::repeat_n(INSIDE, n - 1));
                }
            }
        }
        bytes.push(text.len());
        Self { unit, bytes }
    }

    /// Returns the byte at `offset`. Fails if the offset is after the end of the text or inside a character.
    pub fn to_byte(&self, offset: usize) -> Result<usize, OffsetFault> {
        let unit = self.unit;
        match self.bytes.get(offset) {
            None => Err(OffsetFault::AfterEnd { offset, length: self.bytes.len() - 1, unit }),
            Some(&INSIDE) => Err(OffsetFault::InsideCharacter { offset, unit }),
            Some(&byte) => Ok(byte),
        }
    }

    /// Returns the offset of a byte of the text. Fails if the byte is after the end of the text or inside a character,
    /// or inside a grapheme cluster if the unit is grapheme clusters.
    pub fn from_byte(&self, byte: usize) -> Result<usize, OffsetFault> {
        let length = *self.bytes.last().expect("the map has the end of the text");
        if byte > length {
            return Err(OffsetFault::AfterEnd { offset: byte, length, unit: OffsetUnit::Byte });
        }
        // The bytes ascend, apart from the places inside characters. Each of them belongs to the character before it.
        let (mut low, mut high) = (0, self.bytes.len());
        while low < high {
            let mut middle = usize::midpoint(low, high);
            while self.bytes[middle] == INSIDE {
                middle -= 1;
            }
            match self.bytes[middle].cmp(&byte) {
                std::cmp::Ordering::Equal => return Ok(middle),
                std::cmp::Ordering::Greater => high = middle,
                std::cmp::Ordering::Less => {
                    low = middle + 1;
                    while low < high && self.bytes[low] == INSIDE {
                        low += 1;
                    }
                }
            }
        }
        Err(OffsetFault::InsideCharacter { offset: byte, unit: OffsetUnit::Byte })
    }
}

impl OffsetMap {
    /// Returns the offset of a character boundary. The unit must not be grapheme clusters.
    pub fn offset(&self, byte: usize) -> usize {
        self.from_byte(byte).expect("the ends of spans are character boundaries of the text")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn offsets_inside_characters_are_refused() {
        let text = "a😀e\u{301}";
        let utf16 = OffsetMap::new(text, OffsetUnit::Utf16);
        let inside = OffsetFault::InsideCharacter { offset: 2, unit: OffsetUnit::Utf16 };
        assert_eq!(utf16.to_byte(2), Err(inside));
        let bytes = OffsetMap::new(text, OffsetUnit::Byte);
        assert!(bytes.to_byte(3).is_err() && bytes.from_byte(3).is_err());
        let clusters = OffsetMap::new(text, OffsetUnit::Grapheme);
        assert_eq!((clusters.to_byte(2), clusters.to_byte(3)), (Ok(5), Ok(8)));
        // Between the letter and its accent.
        assert!(clusters.from_byte(6).is_err());
        let end = OffsetFault::AfterEnd { offset: 4, length: 3, unit: OffsetUnit::Grapheme };
        assert_eq!(clusters.to_byte(4), Err(end));
    }

    proptest! {
        #[test]
        fn offsets_select_what_python_and_java_select(text in any::<String>(), a in 0usize..40, b in 0usize..40) {
            let (start, end) = (a.min(b), a.max(b));
            let chars: Vec<char> = text.chars().collect();
            let map = OffsetMap::new(&text, OffsetUnit::CodePoint);
            if let (Ok(from), Ok(to)) = (map.to_byte(start), map.to_byte(end)) {
                prop_assert_eq!(&text[from..to], chars[start..end].iter().collect::<String>());
            } else {
                prop_assert!(end > chars.len());
            }
            let wide: Vec<u16> = text.encode_utf16().collect();
            let map = OffsetMap::new(&text, OffsetUnit::Utf16);
            if let (Ok(from), Ok(to)) = (map.to_byte(start), map.to_byte(end)) {
                prop_assert_eq!(&text[from..to], String::from_utf16(&wide[start..end]).unwrap());
            } else {
                let low = |at: usize| wide.get(at).is_some_and(|unit| (0xdc00..0xe000).contains(unit));
                let is_inside = low(start) || low(end);
                prop_assert!(end > wide.len() || is_inside);
            }
        }

        #[test]
        fn there_and_back_is_the_identity(text in any::<String>()) {
            for unit in OffsetUnit::ALL {
                let map = OffsetMap::new(&text, unit);
                for offset in 0..=unit.measure(&text) {
                    if let Ok(byte) = map.to_byte(offset) {
                        prop_assert_eq!(map.from_byte(byte), Ok(offset));
                    }
                }
                for byte in 0..=text.len() {
                    if let Ok(offset) = map.from_byte(byte) {
                        prop_assert_eq!(map.to_byte(offset), Ok(byte));
                    }
                }
            }
        }
    }
}
