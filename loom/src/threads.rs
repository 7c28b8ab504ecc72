//! The threads, locks and atomics of the pool, as `loom` models them.

pub(crate) use loom::hint::spin_loop;
pub(crate) use loom::sync::atomic::{AtomicUsize, Ordering};
pub(crate) use loom::sync::{Arc, Condvar, Mutex, MutexGuard};
pub(crate) use loom::thread::{JoinHandle, spawn};

/// Spinning changes when threads wait, not for what. One test before sleeping is enough.
pub(crate) const N_SPINS: usize = 1;
