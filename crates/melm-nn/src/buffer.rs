//! Big blocks of numbers that are allocated once.
//!
//! Mapped directly and with huge pages where the system has them: `malloc` would hand the memory of a step back and
//! fault it in again, which costs `torch` a quarter of its time, and small pages cost the table a miss a row.

use memmap2::{MmapMut, MmapOptions};
use std::ops::{Deref, DerefMut};

/// Numbers at a fixed place, zero at first, aligned to a cache line.
#[derive(Default)]
pub struct Buffer {
    map: Option<MmapMut>,
    len: usize,
}

impl Buffer {
    /// `len` zeros. Pages that are never written never take memory.
    ///
    /// # Panics
    /// When the system refuses the memory, as `Vec` does.
    pub fn zeros(len: usize) -> Self {
        let map = (len > 0).then(|| {
            let map = MmapOptions::new()
                .len(len * size_of::<f32>())
                .map_anon()
                .expect("the system has the memory for a buffer");
            #[cfg(target_os = "linux")]
            if len * size_of::<f32>() >= HUGE_PAGE {
                // Only a hint: a kernel without huge pages runs the same program, slower.
                let _ = map.advise(memmap2::Advice::HugePage);
            }
            map
        });
        Self { map, len }
    }

    /// Makes room for `len` numbers; what was in it is lost when it has to grow.
    pub fn reserve(&mut self, len: usize) {
        if self.len < len {
            *self = Self::zeros(len);
        }
    }
}

#[cfg(target_os = "linux")]
const HUGE_PAGE: usize = 2 << 20;

impl Deref for Buffer {
    type Target = [f32];

    #[expect(unsafe_code, reason = "bytes of a mapping as numbers")]
    fn deref(&self) -> &[f32] {
        self.map.as_ref().map_or(&[], |map| {
            // SAFETY: the mapping is page-aligned, `len` numbers long, and any bits are an `f32`.
            unsafe { std::slice::from_raw_parts(map.as_ptr().cast(), self.len) }
        })
    }
}

impl DerefMut for Buffer {
    #[expect(unsafe_code, reason = "bytes of a mapping as numbers")]
    fn deref_mut(&mut self) -> &mut [f32] {
        self.map.as_mut().map_or(&mut [], |map| {
            // SAFETY: as in `deref`, and the mapping is private and borrowed mutably.
            unsafe { std::slice::from_raw_parts_mut(map.as_mut_ptr().cast(), self.len) }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::Buffer;

    #[test]
    fn a_buffer_starts_at_zero_keeps_what_is_written_and_stays_in_place() {
        let mut buffer = Buffer::zeros(1_000_003);
        assert!(buffer.iter().all(|x| *x == 0.0));
        buffer[1_000_002] = 3.0;
        let place = buffer.as_ptr();
        buffer.reserve(7);
        assert_eq!((buffer.as_ptr(), buffer[1_000_002]), (place, 3.0));
        assert!(Buffer::default().is_empty());
    }
}
