//! Checks the pages of a column before the `parquet` crate reads them.
//!
//! The crate allocates what the header of a page claims, up to 2 GiB for a page of a few bytes. This module reads the
//! headers, which are structs of Thrift's compact protocol, and refuses sizes that are not possible.

use super::fault::ParquetFault;
use crate::Limits;

/// The largest size of all pages of a file after decompression.
pub(super) const MAX_DATA: u64 = 1 << 30;
/// The largest number of values of a column in a file.
pub(super) const MAX_VALUES: u64 = 1 << 25;
/// Snappy can write 64 bytes in 3 bytes, but no more.
const MAX_SNAPPY_RATIO: u64 = 22;
/// The deepest nesting of a header. Headers of real files have 3 levels.
const MAX_DEPTH: usize = 16;

/// Sums over the pages of one column, in all row groups.
#[derive(Debug, Default)]
pub(super) struct PageTotals {
    n_bytes: u64,
    n_values: u64,
}

impl PageTotals {
    /// Checks the pages of one row group and adds them. `chunk` are the bytes of the column in this row group.
    pub(super) fn add(
        &mut self,
        chunk: &[u8],
        is_compressed: bool,
        limits: Limits,
    ) -> Result<(), ParquetFault> {
        let (max_data, max_values) = (limits.scale(MAX_DATA), limits.scale(MAX_VALUES));
        let mut thrift = Thrift { rest: chunk };
        while !thrift.rest.is_empty() {
            let page = thrift.page().ok_or_else(|| damaged("the header of a page is not valid"))?;
            let is_short = thrift.take(page.compressed).is_none();
            let ratio = if is_compressed { MAX_SNAPPY_RATIO } else { 1 };
            // 16 bytes more, because very short pages may have a higher ratio.
            let is_long = page.uncompressed > page.compressed * ratio + 16;
            // In a dictionary, each number or string has at least 4 bytes.
            let is_full = page.is_dictionary && page.n_values > page.uncompressed / 4;
            if is_short || is_long || is_full {
                return Err(damaged("the sizes in the header of a page are not possible"));
            }
            self.n_bytes += page.uncompressed;
            self.n_values += page.n_values;
            if self.n_bytes > max_data {
                let limit = format!("{} MiB of data in a column", max_data >> 20);
                return Err(ParquetFault::TooLarge { limit });
            }
            if self.n_values > max_values {
                let limit = format!("{max_values} tokens");
                return Err(ParquetFault::TooLarge { limit });
            }
        }
        Ok(())
    }
}

fn damaged(why: &str) -> ParquetFault {
    ParquetFault::Damaged(why.into())
}

/// The part of the header of a page that says how large it is.
#[derive(Debug, Default)]
struct PageHeader {
    uncompressed: u64,
    compressed: u64,
    n_values: u64,
    is_dictionary: bool,
}

/// Reads values of Thrift's compact protocol. Functions return `None` if the bytes are not valid.
struct Thrift<'b> {
    rest: &'b [u8],
}

/// A field of a struct: its id and the type of its value.
struct Field {
    id: i64,
    kind: u8,
}

/// Types of values.
mod kind {
    pub(super) const STOP: u8 = 0;
    pub(super) const TRUE: u8 = 1;
    pub(super) const FALSE: u8 = 2;
    pub(super) const BYTE: u8 = 3;
    pub(super) const I16: u8 = 4;
    pub(super) const I32: u8 = 5;
    pub(super) const I64: u8 = 6;
    pub(super) const DOUBLE: u8 = 7;
    pub(super) const BINARY: u8 = 8;
    pub(super) const LIST: u8 = 9;
    pub(super) const SET: u8 = 10;
    pub(super) const MAP: u8 = 11;
    pub(super) const STRUCT: u8 = 12;
}

impl<'b> Thrift<'b> {
    fn take(&mut self, n: u64) -> Option<&'b [u8]> {
        let (taken, rest) = self.rest.split_at_checked(usize::try_from(n).ok()?)?;
        self.rest = rest;
        Some(taken)
    }

    fn byte(&mut self) -> Option<u8> {
        self.take(1).map(|bytes| bytes[0])
    }

    fn varint(&mut self) -> Option<u64> {
        let mut number = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            number |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Some(number);
            }
        }
        None
    }

    /// Reads a signed integer.
    fn integer(&mut self) -> Option<i64> {
        let number = self.varint()?;
        Some((number >> 1).cast_signed() ^ -(number & 1).cast_signed())
    }

    /// Reads an integer that is a size: not negative and below 2^31.
    fn size(&mut self) -> Option<u64> {
        self.integer().and_then(|size| u64::try_from(i32::try_from(size).ok()?).ok())
    }

    /// Reads the head of the next field of a struct, or of its end. `last` is the id of the field before.
    fn field(&mut self, last: i64) -> Option<Field> {
        let head = self.byte()?;
        let kind = head & 0x0f;
        let id = match head >> 4 {
            _ if kind == kind::STOP => 0,
            0 => self.integer()?,
            delta => last.checked_add(delta.into())?,
        };
        Some(Field { id, kind })
    }

    fn page(&mut self) -> Option<PageHeader> {
        let mut page = PageHeader::default();
        let mut last = 0;
        loop {
            let Field { id, kind } = self.field(last)?;
            match (id, kind) {
                (_, kind::STOP) => return Some(page),
                (2, kind::I32) => page.uncompressed = self.size()?,
                (3, kind::I32) => page.compressed = self.size()?,
                // The headers of a data page, a dictionary page, and a data page of version 2.
                (5 | 7 | 8, kind::STRUCT) => {
                    page.n_values = self.n_values()?;
                    page.is_dictionary = id == 7;
                }
                _ => self.skip(kind, 0)?,
            }
            last = id;
        }
    }

    /// Reads a struct whose field 1 is a number of values.
    fn n_values(&mut self) -> Option<u64> {
        let (mut n_values, mut last) = (0, 0);
        loop {
            let Field { id, kind } = self.field(last)?;
            match (id, kind) {
                (_, kind::STOP) => return Some(n_values),
                (1, kind::I32) => n_values = self.size()?,
                _ => self.skip(kind, 1)?,
            }
            last = id;
        }
    }

    fn skip(&mut self, kind: u8, depth: usize) -> Option<()> {
        if depth > MAX_DEPTH {
            return None;
        }
        match kind {
            kind::TRUE | kind::FALSE => {}
            kind::BYTE => drop(self.byte()?),
            kind::I16 | kind::I32 | kind::I64 => drop(self.varint()?),
            kind::DOUBLE => drop(self.take(8)?),
            kind::BINARY => {
                let n = self.varint()?;
                self.take(n)?;
            }
            kind::LIST | kind::SET => {
                let head = self.byte()?;
                let n = if head >> 4 == 15 { self.varint()? } else { (head >> 4).into() };
                self.skip_elements(n, head & 0x0f, depth)?;
            }
            kind::MAP => {
                let n = self.varint()?;
                let kinds = if n == 0 { 0 } else { self.byte()? };
                for _ in 0..n {
                    self.skip_elements(1, kinds >> 4, depth)?;
                    self.skip_elements(1, kinds & 0x0f, depth)?;
                }
            }
            kind::STRUCT => self.skip_fields(depth)?,
            _ => return None,
        }
        Some(())
    }

    /// Skips the fields of a struct and its end.
    fn skip_fields(&mut self, depth: usize) -> Option<()> {
        let mut last = 0;
        loop {
            let Field { id, kind } = self.field(last)?;
            if kind == kind::STOP {
                return Some(());
            }
            self.skip(kind, depth + 1)?;
            last = id;
        }
    }

    /// Skips elements of a list. Each element has at least one byte, also a boolean.
    fn skip_elements(&mut self, n: u64, kind: u8, depth: usize) -> Option<()> {
        if n > self.rest.len() as u64 {
            return None;
        }
        for _ in 0..n {
            match kind {
                kind::TRUE | kind::FALSE => drop(self.byte()?),
                _ => self.skip(kind, depth + 1)?,
            }
        }
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A data page: type 0, the two sizes, and a header with the number of values.
    fn page(uncompressed: u8, compressed: u8, n_values: &[u8]) -> Vec<u8> {
        let mut bytes = vec![0x15, 0, 0x15, uncompressed * 2, 0x15, compressed * 2, 0x2c, 0x15];
        bytes.extend(n_values);
        bytes.extend([0, 0]);
        bytes.extend(vec![7; compressed.into()]);
        bytes
    }

    #[test]
    fn pages_that_claim_too_much_are_refused() {
        let add = |bytes: &[u8], is_compressed| {
            PageTotals::default().add(bytes, is_compressed, Limits::default())
        };
        assert_eq!(add(&page(40, 40, &[20]), false), Ok(()));
        assert_eq!(add(&page(60, 5, &[20]), true), Ok(()));
        let impossible = Err(damaged("the sizes in the header of a page are not possible"));
        assert_eq!(add(&page(60, 5, &[20]), false), impossible);
        assert_eq!(add(&page(60, 1, &[20]), true), impossible);
        let short = page(40, 40, &[20]);
        assert_eq!(add(&short[..short.len() - 1], false), impossible);
        // 2^31 - 1 values.
        let many = page(40, 40, &[0xfe, 0xff, 0xff, 0xff, 0x0f]);
        assert!(matches!(add(&many, false), Err(ParquetFault::TooLarge { .. })));
        assert_eq!(add(&short[..5], false), Err(damaged("the header of a page is not valid")));
    }

    proptest! {
        #[test]
        fn arbitrary_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..64)) {
            let _ = PageTotals::default().add(&bytes, true, Limits::default());
        }
    }
}
