//! The part of `MessagePack` that a `DocBin` needs.
//!
//! The reader never allocates: it returns slices of its input, and lengths are checked against the rest of the input.
//! A crate such as rmp-serde builds values whose size the input claims, before the input is known to be that long.

/// Reads values from the front of some bytes.
#[derive(Debug, Clone, Copy)]
pub(super) struct Unpacker<'b> {
    rest: &'b [u8],
}

/// The bytes are not `MessagePack`, end too early, or contain a value of another type than expected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Malformed(pub(super) &'static str);

const TRUNCATED: Malformed = Malformed("the data ends in the middle of a value");

/// The head of a value.
enum Head {
    Nil,
    Bool(bool),
    Unsigned(u64),
    /// A negative integer or a float.
    Number,
    Text(usize),
    Bytes(usize),
    Array(usize),
    Map(usize),
    /// A value of an extension type; the length includes the byte of the type.
    Extension(usize),
}

impl<'b> Unpacker<'b> {
    pub(super) fn new(bytes: &'b [u8]) -> Self {
        Self { rest: bytes }
    }

    /// Returns true if all bytes are read.
    pub(super) fn is_at_end(&self) -> bool {
        self.rest.is_empty()
    }

    fn take(&mut self, n: usize) -> Result<&'b [u8], Malformed> {
        let (taken, rest) = self.rest.split_at_checked(n).ok_or(TRUNCATED)?;
        self.rest = rest;
        Ok(taken)
    }

    /// Reads an unsigned number of `N` bytes, the highest byte first.
    fn number<const N: usize>(&mut self) -> Result<u64, Malformed> {
        Ok(self.take(N)?.iter().fold(0, |number, &byte| number << 8 | u64::from(byte)))
    }

    fn length<const N: usize>(&mut self) -> Result<usize, Malformed> {
        usize::try_from(self.number::<N>()?).map_err(|_| TRUNCATED)
    }

    fn head(&mut self) -> Result<Head, Malformed> {
        let [first] = *self.take(1)? else { return Err(TRUNCATED) };
        Ok(match first {
            0x00..=0x7f => Head::Unsigned(first.into()),
            0x80..=0x8f => Head::Map(usize::from(first & 0x0f)),
            0x90..=0x9f => Head::Array(usize::from(first & 0x0f)),
            0xa0..=0xbf => Head::Text(usize::from(first & 0x1f)),
            0xc0 => Head::Nil,
            0xc1 => return Err(Malformed("a value has the unused type 0xC1")),
            0xc2 | 0xc3 => Head::Bool(first == 0xc3),
            0xc4 => Head::Bytes(self.length::<1>()?),
            0xc5 => Head::Bytes(self.length::<2>()?),
            0xc6 => Head::Bytes(self.length::<4>()?),
            0xc7 => Head::Extension(self.length::<1>()?.saturating_add(1)),
            0xc8 => Head::Extension(self.length::<2>()?.saturating_add(1)),
            0xc9 => Head::Extension(self.length::<4>()?.saturating_add(1)),
            0xca | 0xd2 => self.number::<4>().map(|_| Head::Number)?,
            0xcb | 0xd3 => self.number::<8>().map(|_| Head::Number)?,
            0xcc => Head::Unsigned(self.number::<1>()?),
            0xcd => Head::Unsigned(self.number::<2>()?),
            0xce => Head::Unsigned(self.number::<4>()?),
            0xcf => Head::Unsigned(self.number::<8>()?),
            0xd0 => self.number::<1>().map(|_| Head::Number)?,
            0xd1 => self.number::<2>().map(|_| Head::Number)?,
            0xd4..=0xd8 => Head::Extension((1 << (first - 0xd4)) + 1),
            0xd9 => Head::Text(self.length::<1>()?),
            0xda => Head::Text(self.length::<2>()?),
            0xdb => Head::Text(self.length::<4>()?),
            0xdc => Head::Array(self.length::<2>()?),
            0xdd => Head::Array(self.length::<4>()?),
            0xde => Head::Map(self.length::<2>()?),
            0xdf => Head::Map(self.length::<4>()?),
            0xe0..=0xff => Head::Number,
        })
    }

    /// Reads the length of an array. The elements follow.
    pub(super) fn array(&mut self) -> Result<usize, Malformed> {
        match self.head()? {
            // Each element has at least one byte.
            Head::Array(n) if n <= self.rest.len() => Ok(n),
            Head::Array(_) => Err(TRUNCATED),
            _ => Err(Malformed("expected an array")),
        }
    }

    /// Reads the number of pairs of a map. The keys and values follow in turn.
    pub(super) fn map(&mut self) -> Result<usize, Malformed> {
        match self.head()? {
            Head::Map(n) if n <= self.rest.len() / 2 => Ok(n),
            Head::Map(_) => Err(TRUNCATED),
            _ => Err(Malformed("expected a map")),
        }
    }

    /// Reads a text.
    pub(super) fn text(&mut self) -> Result<&'b str, Malformed> {
        match self.head()? {
            Head::Text(n) => {
                std::str::from_utf8(self.take(n)?).map_err(|_| Malformed("a text is not UTF-8"))
            }
            _ => Err(Malformed("expected a text")),
        }
    }

    /// Reads bytes. Returns no bytes for `nil`.
    pub(super) fn bytes(&mut self) -> Result<&'b [u8], Malformed> {
        match self.head()? {
            Head::Bytes(n) | Head::Text(n) => self.take(n),
            Head::Nil => Ok(&[]),
            _ => Err(Malformed("expected bytes")),
        }
    }

    /// Reads an integer that is not negative.
    pub(super) fn unsigned(&mut self) -> Result<u64, Malformed> {
        match self.head()? {
            Head::Unsigned(number) => Ok(number),
            _ => Err(Malformed("expected an integer that is not negative")),
        }
    }

    /// Reads a boolean.
    pub(super) fn boolean(&mut self) -> Result<bool, Malformed> {
        match self.head()? {
            Head::Bool(value) => Ok(value),
            _ => Err(Malformed("expected true or false")),
        }
    }

    /// Skips a value with everything in it.
    pub(super) fn skip(&mut self) -> Result<(), Malformed> {
        // Values inside arrays and maps are counted instead of called for, so that deep nesting needs no stack.
        let mut n_values: usize = 1;
        while n_values > 0 {
            n_values -= 1;
            match self.head()? {
                Head::Nil | Head::Bool(_) | Head::Unsigned(_) | Head::Number => {}
                Head::Text(n) | Head::Bytes(n) | Head::Extension(n) => drop(self.take(n)?),
                Head::Array(n) => n_values = n_values.saturating_add(n),
                Head::Map(n) => n_values = n_values.saturating_add(n.saturating_mul(2)),
            }
            if n_values > self.rest.len() {
                return Err(TRUNCATED);
            }
        }
        Ok(())
    }
}

/// Writes values.
#[derive(Debug, Default)]
pub(super) struct Packer {
    bytes: Vec<u8>,
}

impl Packer {
    pub(super) fn finish(self) -> Vec<u8> {
        self.bytes
    }

    fn push_long(&mut self, first: u8, n: usize) {
        let n = u32::try_from(n).expect("the data is below the limit of a DocBin");
        self.bytes.push(first);
        self.bytes.extend_from_slice(&n.to_be_bytes());
    }

    pub(super) fn array(&mut self, n: usize) {
        match u8::try_from(n) {
            Ok(n @ 0..=15) => self.bytes.push(0x90 | n),
            _ => self.push_long(0xdd, n),
        }
    }

    /// Writes the head of a map of at most 15 pairs.
    pub(super) fn small_map(&mut self, n: u8) {
        debug_assert!(n <= 15);
        self.bytes.push(0x80 | n);
    }

    pub(super) fn text(&mut self, text: &str) {
        match u8::try_from(text.len()) {
            Ok(n @ 0..=31) => self.bytes.push(0xa0 | n),
            _ => self.push_long(0xdb, text.len()),
        }
        self.bytes.extend_from_slice(text.as_bytes());
    }

    pub(super) fn bytes(&mut self, bytes: &[u8]) {
        self.push_long(0xc6, bytes.len());
        self.bytes.extend_from_slice(bytes);
    }

    pub(super) fn unsigned(&mut self, number: u64) {
        self.bytes.push(0xcf);
        self.bytes.extend_from_slice(&number.to_be_bytes());
    }

    pub(super) fn boolean(&mut self, value: bool) {
        self.bytes.push(if value { 0xc3 } else { 0xc2 });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn lengths_are_checked_before_anything_is_read() {
        // Bytes, a text, an array and a map, each of 4,294,967,295 elements.
        for head in [0xc6, 0xdb, 0xdd, 0xdf] {
            let bytes = [head, 0xff, 0xff, 0xff, 0xff, 0];
            assert_eq!(Unpacker::new(&bytes).skip(), Err(TRUNCATED));
        }
        assert_eq!(Unpacker::new(&[0xdd, 0xff, 0xff, 0xff, 0xff, 0]).array(), Err(TRUNCATED));
        assert_eq!(Unpacker::new(&[0xdf, 0xff, 0xff, 0xff, 0xff, 0]).map(), Err(TRUNCATED));
        assert_eq!(Unpacker::new(&[0xc6, 0xff, 0xff, 0xff, 0xff, 0]).bytes(), Err(TRUNCATED));
    }

    #[test]
    fn deep_nesting_needs_no_stack() {
        let mut bytes = vec![0x91; 1 << 20];
        bytes.push(0xc0);
        let mut unpacker = Unpacker::new(&bytes);
        assert_eq!(unpacker.skip(), Ok(()));
        assert!(unpacker.is_at_end());
    }

    proptest! {
        #[test]
        fn arbitrary_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..64)) {
            let mut unpacker = Unpacker::new(&bytes);
            while !unpacker.is_at_end() && unpacker.skip().is_ok() {}
        }

        #[test]
        fn written_values_are_read_back(text in ".{0,40}", n in 0_usize..70_000, number: u64) {
            let sevens = vec![7; n];
            let mut packer = Packer::default();
            packer.text(&text);
            packer.bytes(&sevens);
            packer.array(n);
            let array = packer.bytes.len();
            packer.unsigned(number);
            packer.boolean(true);
            let mut bytes = packer.finish();
            // The elements of the array.
            bytes.splice(array..array, vec![0xc0; n]);
            let mut unpacker = Unpacker::new(&bytes);
            prop_assert_eq!(unpacker.text(), Ok(text.as_str()));
            prop_assert_eq!(unpacker.bytes(), Ok(sevens.as_slice()));
            prop_assert_eq!(unpacker.array(), Ok(n));
            for _ in 0..n {
                unpacker.skip().unwrap();
            }
            prop_assert_eq!(unpacker.unsigned(), Ok(number));
            prop_assert_eq!(unpacker.boolean(), Ok(true));
            prop_assert!(unpacker.is_at_end());
        }
    }
}
