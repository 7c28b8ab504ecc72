//! Where the arithmetic happens. Today the processor; a CUDA device would stand beside [`Cpu`].

use crate::buffer::Buffer;
use crate::isa::Isa;
use crate::pool::Pool;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The processor: a crew of threads, an instruction set, and working memory that is allocated once.
pub struct Cpu {
    pool: Pool,
    isa: Isa,
    /// One buffer a thread: panels of products, one sentence's attention.
    scratch: Vec<Mutex<Buffer>>,
}

impl Cpu {
    /// `n_threads` threads and the best instruction set there is.
    pub fn new(n_threads: usize) -> Self {
        Self::with(n_threads, Isa::detect())
    }

    /// `n_threads` threads and a chosen instruction set.
    pub fn with(n_threads: usize, isa: Isa) -> Self {
        let pool = Pool::new(n_threads);
        let scratch = (0..pool.n_threads()).map(|_| Mutex::default()).collect();
        Self { pool, isa, scratch }
    }

    /// The instruction set in use.
    pub fn isa(&self) -> Isa {
        self.isa
    }

    pub(crate) fn pool(&self) -> &Pool {
        &self.pool
    }

    /// The buffer of one worker; it only ever grows.
    pub(crate) fn scratch(&self, worker: usize) -> MutexGuard<'_, Buffer> {
        self.scratch[worker].lock().unwrap_or_else(PoisonError::into_inner)
    }
}
