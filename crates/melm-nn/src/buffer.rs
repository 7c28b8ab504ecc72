//! Large arrays of numbers that are allocated once.
//!
//! The memory is mapped directly from the operating system, in huge pages if they are available. `malloc` would return
//! the memory of a step to the operating system, and the next step would fault it in again; `torch` loses a quarter of
//! its time this way. Small pages would cost one TLB miss for each row of the piece table.

use crate::error::Error;
use memmap2::{MmapMut, MmapOptions};
use std::alloc::Layout;
use std::ops::{Deref, DerefMut};

/// An array of `f32` at a fixed address, aligned to a cache line. All numbers are zero at first.
#[derive(Default)]
pub(crate) struct Buffer {
    map: Option<MmapMut>,
    len: usize,
}

impl Buffer {
    /// Allocates `len` zeros. Pages that are never written take no memory.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`] if the size in bytes overflows or the memory cannot be allocated.
    pub(crate) fn zeros(len: usize) -> Result<Self, Error> {
        if len == 0 {
            return Ok(Self::default());
        }
        let layout = Layout::array::<f32>(len).map_err(|_| Error::out_of_memory(len))?;
        let map = MmapOptions::new().len(layout.size()).map_anon();
        let map = map.map_err(|_| Error::out_of_memory(len))?;
        #[cfg(target_os = "linux")]
        if layout.size() >= HUGE_PAGE {
            // This is only a hint. Without huge pages the program runs too, but slower.
            let _ = map.advise(memmap2::Advice::HugePage);
        }
        Ok(Self { map: Some(map), len })
    }

    /// Grows the buffer to at least `len` numbers. If it has to grow, its contents are lost.
    ///
    /// # Errors
    /// As [`Self::zeros`]. The buffer is unchanged after an error.
    pub(crate) fn try_reserve(&mut self, len: usize) -> Result<(), Error> {
        if self.len < len {
            // The batches of a call differ a little. With spare room they do not allocate again and again.
            let spare = self.len / 8;
            *self = Self::zeros(len.max(self.len + spare))?;
        }
        Ok(())
    }

    /// Like [`Self::try_reserve`], but panics instead of returning an error: for the small working memory of tasks,
    /// which cannot return errors.
    ///
    /// # Panics
    /// If the memory cannot be allocated. This is unlikely, because callers have already reserved larger buffers for
    /// the same pass by [`Self::try_reserve`].
    pub(crate) fn reserve(&mut self, len: usize) {
        self.try_reserve(len).unwrap_or_else(|error| panic!("{error}"));
    }
}

/// Allocates a vector of zeros.
///
/// # Errors
/// [`Error::OutOfMemory`] if the memory cannot be allocated.
pub(crate) fn zeroed_vec(len: usize) -> Result<Vec<f32>, Error> {
    let mut values = Vec::new();
    values.try_reserve_exact(len).map_err(|_| Error::out_of_memory(len))?;
    values.resize(len, 0.0);
    Ok(values)
}

#[cfg(target_os = "linux")]
const HUGE_PAGE: usize = 2 << 20;

impl Deref for Buffer {
    type Target = [f32];

    #[expect(unsafe_code, reason = "bytes of a mapping as numbers")]
    fn deref(&self) -> &[f32] {
        self.map.as_ref().map_or(&[], |map| {
            // SAFETY: the mapping is page-aligned and holds `len` numbers, and every bit pattern is a valid `f32`.
            unsafe { std::slice::from_raw_parts(map.as_ptr().cast(), self.len) }
        })
    }
}

impl DerefMut for Buffer {
    #[expect(unsafe_code, reason = "bytes of a mapping as numbers")]
    fn deref_mut(&mut self) -> &mut [f32] {
        self.map.as_mut().map_or(&mut [], |map| {
            // SAFETY: as in `deref`. The mapping is private and borrowed mutably.
            unsafe { std::slice::from_raw_parts_mut(map.as_mut_ptr().cast(), self.len) }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::{Buffer, zeroed_vec};
    use crate::error::Error;

    #[test]
    fn a_buffer_starts_at_zero_keeps_its_contents_and_does_not_move() {
        let mut buffer = Buffer::zeros(1_000_003).unwrap();
        assert!(buffer.iter().all(|x| *x == 0.0));
        buffer[1_000_002] = 3.0;
        let place = buffer.as_ptr();
        buffer.reserve(7);
        assert_eq!((buffer.as_ptr(), buffer[1_000_002]), (place, 3.0));
        assert!(Buffer::default().is_empty());
    }

    #[test]
    fn sizes_that_overflow_or_cannot_be_had_are_errors() {
        // The sizes in bytes: the first wraps around to 4, the second to 0, the third exceeds `isize::MAX`, the fourth
        // overflows, and the fifth is more memory than any machine has.
        for len in [(1 << 62) + 1, 1 << 62, 1 << 61, usize::MAX, 1 << 50] {
            let error = Buffer::zeros(len).err().expect("no machine has this memory");
            let Error::OutOfMemory { wanted } = error else { panic!("{error}") };
            assert_eq!(wanted, len.saturating_mul(4));
            assert!(zeroed_vec(len).is_err());
            let mut buffer = Buffer::zeros(3).unwrap();
            assert!(buffer.try_reserve(len).is_err());
            assert_eq!(buffer.len(), 3, "a buffer that cannot grow is unchanged");
        }
    }
}
