//! Copies from GPU memory to CPU memory that run while the CPU continues.
#![expect(unsafe_code, reason = "the driver is a C library")]

use super::driver::{check, cuda_error};
use super::gpu::Download;
use crate::error::Error;
use cudarc::driver::{result, sys};
use std::ffi::c_void;

/// Page-locked CPU memory for copies from the GPU. Several copies can be under way.
#[derive(Default)]
pub(super) struct Downloads {
    slots: Vec<Slot>,
}

/// The memory of one copy.
struct Slot {
    at: *mut c_void,
    n_bytes: usize,
    /// The event that the GPU records when the copy is done.
    done: sys::CUevent,
    is_used: bool,
}

impl Slot {
    fn reserve(&mut self, n_bytes: usize) -> Result<(), Error> {
        if self.n_bytes < n_bytes {
            self.release();
            // SAFETY: a context is current.
            self.at = unsafe { result::malloc_host(n_bytes, 0) }
                .map_err(|error| cuda_error("pinned memory", &error))?;
            self.n_bytes = n_bytes;
        }
        Ok(())
    }

    fn release(&mut self) {
        if self.n_bytes > 0 {
            // SAFETY: the memory was allocated in `reserve`, and no copy to it is running.
            let _ = unsafe { result::free_host(self.at) };
            self.n_bytes = 0;
        }
    }
}

impl Downloads {
    /// Starts a copy of `n_bytes` bytes at `from`, after all earlier work of the stream.
    ///
    /// # Safety
    /// The context of the stream is current, and the caller owns `n_bytes` bytes at `from`.
    pub(super) unsafe fn begin(
        &mut self,
        from: u64,
        n_bytes: usize,
        stream: sys::CUstream,
    ) -> Result<Download, Error> {
        let free = self.slots.iter().position(|slot| !slot.is_used);
        let index = free.unwrap_or(self.slots.len());
        if free.is_none() {
            let done = result::event::create(sys::CUevent_flags::CU_EVENT_DISABLE_TIMING)
                .map_err(|error| cuda_error("an event", &error))?;
            let at = std::ptr::null_mut();
            self.slots.push(Slot { at, n_bytes: 0, done, is_used: false });
        }
        let slot = &mut self.slots[index];
        slot.reserve(n_bytes)?;
        // SAFETY: the slot has room. Nothing reads it before the event.
        unsafe {
            let out = std::slice::from_raw_parts_mut(slot.at.cast::<u8>(), n_bytes);
            check("a copy from it", result::memcpy_dtoh_async(out, from, stream))?;
            check("an event", result::event::record(slot.done, stream))?;
        }
        slot.is_used = true;
        Ok(Download { index, n_bytes })
    }

    /// Returns the event that the GPU records when a copy is done.
    pub(super) fn done(&self, download: &Download) -> sys::CUevent {
        self.slots[download.index].done
    }

    /// Returns the bytes of a copy, and frees its memory for other copies.
    ///
    /// # Safety
    /// The event of the copy has been recorded.
    pub(super) unsafe fn take(&mut self, download: &Download, out: &mut [u8]) {
        let slot = &mut self.slots[download.index];
        assert_eq!(out.len(), download.n_bytes, "as many bytes as `begin` asked for");
        // SAFETY: the copy is done, as the caller guarantees, and has written this many bytes.
        out.copy_from_slice(unsafe { std::slice::from_raw_parts(slot.at.cast::<u8>(), out.len()) });
        slot.is_used = false;
    }

    /// Frees all memory.
    ///
    /// # Safety
    /// No copy is running, and no other method is called afterwards.
    pub(super) unsafe fn close(&mut self) {
        for mut slot in self.slots.drain(..) {
            slot.release();
            // SAFETY: the event was created in `begin`.
            let _ = unsafe { result::event::destroy(slot.done) };
        }
    }
}
