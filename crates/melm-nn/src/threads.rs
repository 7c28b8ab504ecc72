//! The threads, locks and atomics that the pool uses. The folder `loom` of the repository compiles the pool with those
//! of the crate `loom` instead, which tries every order in which threads can run.

pub(crate) use std::hint::spin_loop;
pub(crate) use std::sync::atomic::{AtomicUsize, Ordering};
pub(crate) use std::sync::{Arc, Condvar, Mutex, MutexGuard};
pub(crate) use std::thread::{JoinHandle, spawn};

/// How many times a waiting thread spins before it sleeps, which takes some hundred microseconds. A step has hundreds
/// of short serial sections, and waking a thread on a virtual machine takes longer than most of them.
pub(crate) const N_SPINS: usize = 3000;
