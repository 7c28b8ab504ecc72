//! Memory of a machine: blocks that free themselves, and one that a pass lays its buffers out in.

use super::machine::{Machine, Numbers, Span};
use crate::error::Error;
use std::sync::Arc;

/// Buffers begin at multiples of this.
const ALIGNMENT: usize = 256;

/// Bytes on the machine.
pub(crate) struct Block {
    machine: Arc<dyn Machine>,
    address: u64,
    n_bytes: usize,
}

impl Block {
    pub(super) fn empty(machine: &Arc<dyn Machine>) -> Self {
        Self { machine: Arc::clone(machine), address: 0, n_bytes: 0 }
    }

    /// So many zeros.
    pub(super) fn zeros(machine: &Arc<dyn Machine>, n_bytes: usize) -> Result<Self, Error> {
        let mut block = Self::empty(machine);
        block.reserve(n_bytes)?;
        Ok(block)
    }

    /// Makes room; what was in it is lost when it has to grow.
    pub(super) fn reserve(&mut self, n_bytes: usize) -> Result<(), Error> {
        if self.n_bytes < n_bytes {
            self.give_back();
            self.address = self.machine.allocate(n_bytes)?;
            self.n_bytes = n_bytes;
        }
        Ok(())
    }

    /// Makes room and keeps the first `n_kept` bytes.
    pub(super) fn grow(&mut self, n_kept: usize, n_bytes: usize) -> Result<(), Error> {
        if self.n_bytes < n_bytes {
            let address = self.machine.allocate(n_bytes)?;
            if n_kept > 0 {
                self.machine.copy(self.address, address, n_kept)?;
            }
            self.give_back();
            (self.address, self.n_bytes) = (address, n_bytes);
        }
        Ok(())
    }

    /// Makes room for what `lay_out` places, whose numbers of products have so many bytes, and places it.
    pub(super) fn lay_out<T>(
        &mut self,
        size: usize,
        lay_out: impl Fn(&mut Arena) -> T,
    ) -> Result<T, Error> {
        let mut counting = Arena { start: 0, used: 0, size };
        lay_out(&mut counting);
        self.reserve(counting.used)?;
        Ok(lay_out(&mut Arena { start: self.address, used: 0, size }))
    }

    pub(super) fn give_back(&mut self) {
        if self.n_bytes > 0 {
            self.machine.free(self.address);
            (self.address, self.n_bytes) = (0, 0);
        }
    }

    pub(super) fn span<T>(&self) -> Span<T> {
        Span::new(self.address, self.n_bytes / size_of::<T>())
    }

    pub(super) fn numbers(&self, size: usize) -> Numbers {
        Numbers { address: self.address, len: self.n_bytes / size, size }
    }

    pub(super) fn n_bytes(&self) -> usize {
        self.n_bytes
    }

    /// Copies all of a block that is as large.
    pub(super) fn become_as(&self, other: &Self) -> Result<(), Error> {
        assert_eq!(self.n_bytes, other.n_bytes, "blocks of one size");
        self.machine.copy(other.address, self.address, self.n_bytes)
    }

    pub(super) fn machine(&self) -> &Arc<dyn Machine> {
        &self.machine
    }
}

impl Drop for Block {
    fn drop(&mut self) {
        self.give_back();
    }
}

/// Hands out places in one block, or only counts how much they take; see [`Block::lay_out`].
pub(super) struct Arena {
    start: u64,
    used: usize,
    size: usize,
}

impl Arena {
    pub(super) fn span<T>(&mut self, len: usize) -> Span<T> {
        Span::new(self.take(len * size_of::<T>()), len)
    }

    /// Numbers that products read.
    pub(super) fn numbers(&mut self, len: usize) -> Numbers {
        Numbers { address: self.take(len * self.size), len, size: self.size }
    }

    fn take(&mut self, n_bytes: usize) -> u64 {
        let address = self.start + self.used as u64;
        self.used += n_bytes.next_multiple_of(ALIGNMENT);
        address
    }
}

/// What goes to the machine in one copy.
#[derive(Default)]
pub(super) struct Parcel {
    bytes: Vec<u8>,
}

/// Something whose bytes a kernel reads as they are.
pub(super) trait Plain: Copy {
    /// Appends the bytes.
    fn put(&self, bytes: &mut Vec<u8>);
}

impl Plain for u8 {
    fn put(&self, bytes: &mut Vec<u8>) {
        bytes.push(*self);
    }
}

impl Plain for u32 {
    fn put(&self, bytes: &mut Vec<u8>) {
        bytes.extend(self.to_le_bytes());
    }
}

impl Plain for u64 {
    fn put(&self, bytes: &mut Vec<u8>) {
        bytes.extend(self.to_le_bytes());
    }
}

impl Parcel {
    pub(super) fn clear(&mut self) {
        self.bytes.clear();
    }

    /// Adds a list; where it will be comes back, relative to the parcel's own place.
    pub(super) fn put<T: Plain>(&mut self, list: impl IntoIterator<Item = T>) -> Span<T> {
        let start = self.bytes.len().next_multiple_of(ALIGNMENT);
        self.bytes.resize(start, 0);
        let mut len = 0;
        for one in list {
            one.put(&mut self.bytes);
            len += 1;
        }
        Span::new(start as u64, len)
    }

    /// Sends it.
    pub(super) fn send(&self, block: &mut Block) -> Result<(), Error> {
        if self.bytes.is_empty() {
            return Ok(());
        }
        block.reserve(self.bytes.len().next_multiple_of(1 << 16))?;
        block.machine.upload(&self.bytes, block.address)
    }

    /// The place of a list after sending.
    pub(super) fn placed<T>(span: Span<T>, block: &Block) -> Span<T> {
        Span::new(block.address + span.address, span.len())
    }
}

/// Copies numbers to the machine.
pub(super) fn write_floats(
    machine: &dyn Machine,
    values: &[f32],
    to: Span<f32>,
) -> Result<(), Error> {
    assert!(values.len() <= to.len(), "room for the numbers");
    machine.upload(bytes(values), to.address)
}

/// Copies numbers from the machine.
pub(super) fn read_floats(
    machine: &dyn Machine,
    from: Span<f32>,
    out: &mut [f32],
) -> Result<(), Error> {
    assert_eq!(from.len(), out.len(), "as many numbers");
    machine.download(from.address, bytes_mut(out))
}

#[expect(unsafe_code, reason = "numbers as the bytes they are")]
fn bytes(values: &[f32]) -> &[u8] {
    // SAFETY: every f32 is four bytes without padding, and bytes need no alignment.
    unsafe { std::slice::from_raw_parts(values.as_ptr().cast(), size_of_val(values)) }
}

#[expect(unsafe_code, reason = "numbers as the bytes they are")]
fn bytes_mut(values: &mut [f32]) -> &mut [u8] {
    // SAFETY: as in `bytes`, and any four bytes are an f32.
    unsafe { std::slice::from_raw_parts_mut(values.as_mut_ptr().cast(), size_of_val(values)) }
}
