//! Where the arithmetic happens.

use crate::buffer::Buffer;
use crate::isa::Isa;
use crate::pool::Pool;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Where a model is trained and run.
pub enum Device {
    /// The processor.
    Cpu(Cpu),
}

impl Device {
    /// The processor, with `n_threads` threads and the best instruction set there is.
    pub fn cpu(n_threads: usize) -> Self {
        Self::Cpu(Cpu::new(n_threads))
    }

    /// The processor that models without kernels of their own run on.
    pub(crate) fn host(&self) -> &Cpu {
        let Self::Cpu(cpu) = self;
        cpu
    }

    /// What decides the last bits of a result.
    pub fn arithmetic(&self) -> &'static str {
        match self {
            Self::Cpu(cpu) => cpu.isa().name(),
        }
    }
}

impl From<Cpu> for Device {
    fn from(cpu: Cpu) -> Self {
        Self::Cpu(cpu)
    }
}

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
