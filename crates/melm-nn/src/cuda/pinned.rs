//! Page-locked CPU memory for copies from the GPU.
#![expect(unsafe_code, reason = "the driver is a C library")]

use super::driver::{check, cuda_error};
use crate::error::Error;
use cudarc::driver::{result, sys};
use std::ffi::c_void;

/// The memory of one copy.
pub(super) struct PinnedMemory {
    at: *mut c_void,
    n_bytes: usize,
    /// The event that the GPU records when the copy is done.
    done: sys::CUevent,
}

impl PinnedMemory {
    /// Allocates `n_bytes` bytes, at least one.
    ///
    /// # Safety
    /// A context is current.
    pub(super) unsafe fn new(n_bytes: usize) -> Result<Self, Error> {
        assert!(n_bytes > 0, "memory of no bytes has no address");
        let done = result::event::create(sys::CUevent_flags::CU_EVENT_DISABLE_TIMING)
            .map_err(|error| cuda_error("an event", &error))?;
        // SAFETY: a context is current, as the caller guarantees.
        match unsafe { result::malloc_host(n_bytes, 0) } {
            Ok(at) => Ok(Self { at, n_bytes, done }),
            Err(error) => {
                // SAFETY: the event was created above, and nothing uses it.
                let _ = unsafe { result::event::destroy(done) };
                Err(cuda_error("pinned memory", &error))
            }
        }
    }

    /// Starts a copy of `n_bytes` bytes at `from`, after all earlier work of the stream.
    ///
    /// # Safety
    /// The context of the stream is current, and the caller owns `n_bytes` bytes at `from`. All copies to this memory are on
    /// the same stream, and nothing reads it until the event [`Self::done`] has completed.
    pub(super) unsafe fn begin_copy(
        &mut self,
        from: u64,
        n_bytes: usize,
        stream: sys::CUstream,
    ) -> Result<(), Error> {
        assert!(n_bytes <= self.n_bytes, "room for the copy");
        // SAFETY: the memory has room for the bytes, as checked above. Its address is not null, because it has at least one
        // byte.
        unsafe {
            if n_bytes > 0 {
                let out = std::slice::from_raw_parts_mut(self.at.cast::<u8>(), n_bytes);
                check("a copy from it", result::memcpy_dtoh_async(out, from, stream))?;
            }
            check("an event", result::event::record(self.done, stream))
        }
    }

    /// Returns the event that the GPU records when a copy is done.
    pub(super) fn done(&self) -> sys::CUevent {
        self.done
    }

    /// Reads the bytes of a copy, as many as `out` has.
    ///
    /// # Safety
    /// A copy of at least as many bytes was started, and its event has completed.
    pub(super) unsafe fn read(&self, out: &mut [u8]) {
        assert!(out.len() <= self.n_bytes, "a copy that fits");
        // SAFETY: the copy has completed, as the caller guarantees, and has written this many bytes.
        out.copy_from_slice(unsafe { std::slice::from_raw_parts(self.at.cast::<u8>(), out.len()) });
    }

    /// Frees the memory.
    ///
    /// # Safety
    /// A context is current, and no copy is running.
    pub(super) unsafe fn close(self) {
        // SAFETY: memory and event were made in `new`, and `self` is gone afterwards.
        unsafe {
            let _ = result::free_host(self.at);
            let _ = result::event::destroy(self.done);
        }
    }
}
