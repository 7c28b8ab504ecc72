//! Page-locked CPU memory for copies from the GPU.
#![expect(unsafe_code, reason = "the driver is a C library")]

use super::driver::{check, cuda_error};
use crate::error::Error;
use cudarc::driver::{result, sys};

/// The memory of one copy. The context of the GPU must be current in all its functions.
pub(super) struct PinnedMemory {
    bytes: &'static mut [u8],
    /// The event that the GPU records when the copy is done.
    done: sys::CUevent,
}

impl PinnedMemory {
    /// Allocates `n_bytes` bytes, at least one.
    pub(super) fn new(n_bytes: usize) -> Result<Self, Error> {
        assert!(n_bytes > 0, "memory of no bytes has no address");
        let done = result::event::create(sys::CUevent_flags::CU_EVENT_DISABLE_TIMING)
            .map_err(|error| cuda_error("an event", &error))?;
        // SAFETY: a context is current. The new memory has `n_bytes` bytes, which are set here. It lives until `close`
        // frees it and drops `self`. If it cannot be allocated, nothing uses the event.
        let bytes = unsafe {
            result::malloc_host(n_bytes, 0)
                .inspect_err(|_| {
                    let _ = result::event::destroy(done);
                })
                .map(|at| {
                    at.cast::<u8>().write_bytes(0, n_bytes);
                    std::slice::from_raw_parts_mut(at.cast::<u8>(), n_bytes)
                })
        };
        Ok(Self { bytes: bytes.map_err(|error| cuda_error("pinned memory", &error))?, done })
    }

    /// Starts a copy of the `n_bytes` bytes at `from`, which the caller owns, after all earlier work of the stream. All copies
    /// to this memory must be on the same stream.
    pub(super) fn begin_copy(
        &mut self,
        from: u64,
        n_bytes: usize,
        stream: sys::CUstream,
    ) -> Result<(), Error> {
        let out = &mut self.bytes[..n_bytes];
        // SAFETY: the caller owns the bytes at `from`, and `out` has room for them. `bytes` is read only after the event.
        unsafe {
            if n_bytes > 0 {
                check("a copy from it", result::memcpy_dtoh_async(out, from, stream))?;
            }
            check("an event", result::event::record(self.done, stream))
        }
    }

    /// Returns the event that the GPU records when a copy is done.
    pub(super) fn done(&self) -> sys::CUevent {
        self.done
    }

    /// Returns the bytes. Those of a copy may be read when its event has completed.
    pub(super) fn bytes(&self) -> &[u8] {
        self.bytes
    }

    /// Frees the memory. No copy may be running.
    pub(super) fn close(self) {
        // SAFETY: memory and event were made in `new`, no copy is running, and `self` is gone afterwards.
        unsafe {
            let _ = result::free_host(self.bytes.as_mut_ptr().cast());
            let _ = result::event::destroy(self.done);
        }
    }
}
