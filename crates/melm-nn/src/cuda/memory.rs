//! GPU memory: buffers that are freed on drop, an arena that divides a buffer among the arrays of a pass, and a staging
//! buffer for uploads.

use super::gpu::Gpu;
use super::span::{FloatSpan, Span};
use crate::error::Error;
use std::sync::Arc;

/// The address of every buffer is a multiple of this many bytes.
const ALIGNMENT: usize = 256;
/// The size of staging memory is a multiple of this many bytes.
const STAGING_STEP: usize = 1 << 16;

/// A block of GPU memory, freed on drop.
pub(super) struct DeviceBuffer {
    gpu: Arc<dyn Gpu>,
    address: u64,
    n_bytes: usize,
}

impl DeviceBuffer {
    /// Returns a buffer without memory.
    pub(super) fn empty(gpu: &Arc<dyn Gpu>) -> Self {
        Self { gpu: Arc::clone(gpu), address: 0, n_bytes: 0 }
    }

    /// Allocates `n_bytes` zeros.
    pub(super) fn zeros(gpu: &Arc<dyn Gpu>, n_bytes: usize) -> Result<Self, Error> {
        let mut buffer = Self::empty(gpu);
        buffer.reserve(n_bytes)?;
        Ok(buffer)
    }

    /// Ensures that the buffer has at least `n_bytes`. If it has to grow, its content is replaced by zeros.
    pub(super) fn reserve(&mut self, n_bytes: usize) -> Result<(), Error> {
        if self.n_bytes < n_bytes {
            self.release();
            self.address = self.gpu.allocate(n_bytes)?;
            self.n_bytes = n_bytes;
        }
        Ok(())
    }

    /// Ensures that the buffer has at least `n_bytes`. If it has to grow, the first `n_kept` bytes are kept.
    pub(super) fn grow(&mut self, n_kept: usize, n_bytes: usize) -> Result<(), Error> {
        if self.n_bytes < n_bytes {
            let address = self.gpu.allocate(n_bytes)?;
            if n_kept > 0 {
                self.gpu.copy(self.address, address, n_kept)?;
            }
            self.release();
            (self.address, self.n_bytes) = (address, n_bytes);
        }
        Ok(())
    }

    /// Lays out arrays in this buffer, which grows if necessary. `lay_out` takes the arrays from an arena. It is called
    /// twice: first to add up the sizes, then to get the addresses. Each number in an operand of a product has
    /// `operand_size` bytes.
    pub(super) fn lay_out<T>(
        &mut self,
        operand_size: usize,
        lay_out: impl Fn(&mut Arena) -> T,
    ) -> Result<T, Error> {
        let mut counting = Arena { start: 0, used: 0, operand_size };
        lay_out(&mut counting);
        self.reserve(counting.used)?;
        Ok(lay_out(&mut Arena { start: self.address, used: 0, operand_size }))
    }

    /// Frees the memory now, without waiting for the drop.
    pub(super) fn release(&mut self) {
        if self.n_bytes > 0 {
            self.gpu.free(self.address);
            (self.address, self.n_bytes) = (0, 0);
        }
    }

    pub(super) fn span<T>(&self) -> Span<T> {
        Span::new(self.address, self.n_bytes / size_of::<T>())
    }

    pub(super) fn floats(&self, element_size: usize) -> FloatSpan {
        FloatSpan { address: self.address, len: self.n_bytes / element_size, element_size }
    }

    pub(super) fn n_bytes(&self) -> usize {
        self.n_bytes
    }

    /// Copies the content of a buffer of the same size.
    pub(super) fn copy_from(&self, other: &Self) -> Result<(), Error> {
        assert_eq!(self.n_bytes, other.n_bytes, "buffers of one size");
        self.gpu.copy(other.address, self.address, self.n_bytes)
    }

    pub(super) fn gpu(&self) -> &Arc<dyn Gpu> {
        &self.gpu
    }
}

impl Drop for DeviceBuffer {
    fn drop(&mut self) {
        self.release();
    }
}

/// Divides one buffer into consecutive arrays; see [`DeviceBuffer::lay_out`].
pub(super) struct Arena {
    start: u64,
    used: usize,
    operand_size: usize,
}

impl Arena {
    pub(super) fn span<T>(&mut self, len: usize) -> Span<T> {
        Span::new(self.take(len * size_of::<T>()), len)
    }

    /// Returns an array of `len` floats in the type that products read.
    pub(super) fn operand(&mut self, len: usize) -> FloatSpan {
        let element_size = self.operand_size;
        FloatSpan { address: self.take(len * element_size), len, element_size }
    }

    fn take(&mut self, n_bytes: usize) -> u64 {
        let address = self.start + self.used as u64;
        self.used += n_bytes.next_multiple_of(ALIGNMENT);
        address
    }
}

/// Lists that are collected in CPU memory and then copied to the GPU with one upload.
#[derive(Default)]
pub(super) struct StagingBuffer {
    bytes: Vec<u8>,
}

/// A list in a [`StagingBuffer`]; [`DeviceBuffer::staged`] returns its GPU address after the upload.
pub(super) struct Staged<T> {
    /// The list. Its address is relative to the start of the staging buffer.
    offset: Span<T>,
}

impl<T> Clone for Staged<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Staged<T> {}

/// A type with a fixed byte layout for kernels, which [`Self::append`] writes.
pub(super) trait ToBytes: Copy {
    /// Appends the bytes of the value, in the layout of the C struct.
    fn append(&self, bytes: &mut Vec<u8>);
}

impl ToBytes for u8 {
    fn append(&self, bytes: &mut Vec<u8>) {
        bytes.push(*self);
    }
}

impl ToBytes for u32 {
    fn append(&self, bytes: &mut Vec<u8>) {
        bytes.extend(self.to_le_bytes());
    }
}

impl ToBytes for f32 {
    fn append(&self, bytes: &mut Vec<u8>) {
        bytes.extend(self.to_le_bytes());
    }
}

impl ToBytes for u64 {
    fn append(&self, bytes: &mut Vec<u8>) {
        bytes.extend(self.to_le_bytes());
    }
}

impl StagingBuffer {
    pub(super) fn clear(&mut self) {
        self.bytes.clear();
    }

    /// Appends a list.
    pub(super) fn push<T: ToBytes>(&mut self, list: impl IntoIterator<Item = T>) -> Staged<T> {
        let start = self.bytes.len().next_multiple_of(ALIGNMENT);
        self.bytes.resize(start, 0);
        let mut len = 0;
        for item in list {
            item.append(&mut self.bytes);
            len += 1;
        }
        Staged { offset: Span::new(start as u64, len) }
    }

    /// Copies all lists to `buffer`, which grows if necessary.
    pub(super) fn upload(&self, buffer: &mut DeviceBuffer) -> Result<(), Error> {
        if self.bytes.is_empty() {
            return Ok(());
        }
        buffer.reserve(self.bytes.len().next_multiple_of(STAGING_STEP))?;
        buffer.gpu.upload(&self.bytes, buffer.address)
    }
}

impl DeviceBuffer {
    /// Returns the GPU address of a list that [`StagingBuffer::upload`] copied to this buffer.
    pub(super) fn staged<T>(&self, list: Staged<T>) -> Span<T> {
        Span::new(self.address + list.offset.address, list.offset.len())
    }
}

/// Copies floats to GPU memory.
pub(super) fn upload_floats(gpu: &dyn Gpu, values: &[f32], to: Span<f32>) -> Result<(), Error> {
    assert!(values.len() <= to.len(), "room for the values");
    gpu.upload(bytes(values), to.address)
}

/// Copies floats from GPU memory to CPU memory. Waits until all earlier work is done.
pub(super) fn download_floats(
    gpu: &dyn Gpu,
    from: Span<f32>,
    out: &mut [f32],
) -> Result<(), Error> {
    assert_eq!(from.len(), out.len(), "as many values");
    gpu.download(from.address, bytes_mut(out))
}

#[expect(unsafe_code, reason = "floats viewed as bytes")]
fn bytes(values: &[f32]) -> &[u8] {
    // SAFETY: every f32 has four bytes and no padding, and bytes need no alignment.
    unsafe { std::slice::from_raw_parts(values.as_ptr().cast(), size_of_val(values)) }
}

#[expect(unsafe_code, reason = "floats viewed as bytes")]
pub(super) fn bytes_mut(values: &mut [f32]) -> &mut [u8] {
    // SAFETY: as in `bytes`. Any four bytes are a valid f32.
    unsafe { std::slice::from_raw_parts_mut(values.as_mut_ptr().cast(), size_of_val(values)) }
}
