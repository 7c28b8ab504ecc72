//! Reads streams with a bound. If memory runs out, this is an error, and the process is not aborted.

use std::io::{self, Read};

/// The largest number of bytes that are read at a time.
const CHUNK: usize = 1 << 20;

/// Appends the next bytes of a stream: about as many as there are already, but not more than 1 MiB. Returns their number,
/// which is 0 at the end of the stream. Fails if the stream cannot be read, or if there is not enough memory.
pub(crate) fn read_chunk(from: &mut impl Read, bytes: &mut Vec<u8>) -> io::Result<usize> {
    let n_wanted = bytes.len().clamp(CHUNK >> 6, CHUNK);
    // `read_to_end` aborts if the buffer is full and cannot grow. With twice the room, it is never full.
    reserve(bytes, 2 * n_wanted)?;
    from.take(n_wanted as u64).read_to_end(bytes)
}

/// Reads a stream until it ends, or until it has more than `max_bytes`. The caller compares the length with `max_bytes`.
pub(crate) fn read_beyond(from: impl Read, max_bytes: u64) -> (Vec<u8>, io::Result<()>) {
    let mut from = from.take(max_bytes.saturating_add(1));
    let mut bytes = Vec::new();
    loop {
        match read_chunk(&mut from, &mut bytes) {
            Ok(0) => return (bytes, Ok(())),
            Ok(_) => {}
            Err(error) => return (bytes, Err(error)),
        }
    }
}

/// Makes room for `n` more bytes. Fails if there is not enough memory.
fn reserve(bytes: &mut Vec<u8>, n: usize) -> io::Result<()> {
    // If the memory does not suffice to double the buffer, it may suffice for a little more.
    Ok(bytes.try_reserve(n).or_else(|_| bytes.try_reserve_exact(n))?)
}

/// Copies bytes. Fails if there is not enough memory.
#[cfg(feature = "parquet")]
pub(crate) fn copy(bytes: &[u8]) -> io::Result<Vec<u8>> {
    let mut copied = Vec::new();
    copied.try_reserve_exact(bytes.len())?;
    copied.extend_from_slice(bytes);
    Ok(copied)
}

/// Decodes ISO 8859-1. Fails if there is not enough memory.
pub(crate) fn decode_latin1(bytes: &[u8]) -> io::Result<String> {
    let n_long = bytes.iter().filter(|byte| !byte.is_ascii()).count();
    let mut text = String::new();
    text.try_reserve_exact(bytes.len() + n_long)?;
    text.extend(bytes.iter().map(|&byte| char::from(byte)));
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stream_is_read_to_its_end_or_beyond_the_bound() {
        for n in [0, 1, CHUNK - 1, CHUNK, 3 * CHUNK + 7] {
            let whole: Vec<u8> = (0..=250).cycle().take(n).collect();
            let (bytes, result) = read_beyond(&whole[..], n as u64);
            result.unwrap();
            assert!(bytes == whole && bytes.capacity() <= 4 * n + CHUNK, "{n}");
        }
        let (bytes, result) = read_beyond(io::repeat(0), 9 << 20);
        result.unwrap();
        assert_eq!(bytes.len(), (9 << 20) + 1);
    }

    #[test]
    fn latin1_gives_a_character_for_each_byte() {
        let bytes: Vec<u8> = (1..=255).collect();
        let text = decode_latin1(&bytes).unwrap();
        assert_eq!(text.chars().map(u32::from).collect::<Vec<_>>(), (1..=255).collect::<Vec<_>>());
    }
}
