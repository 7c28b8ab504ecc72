//! Where the arithmetic happens.

use crate::buffer::Buffer;
use crate::cuda::{Cuda, Precision};
use crate::error::Error;
use crate::isa::Isa;
use crate::pool::Pool;
use std::ops::Deref;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Where a model is trained and run.
pub enum Device {
    /// The processor.
    Cpu(Cpu),
    /// An NVIDIA card.
    Cuda(Cuda),
}

impl Device {
    /// The processor, with `n_threads` threads and the best instruction set there is.
    pub fn cpu(n_threads: usize) -> Self {
        Self::Cpu(Cpu::new(n_threads))
    }

    /// The processor: this device, or if it is a card, the one beside it. For models that a card has no kernels for; what
    /// they compute does not depend on the number of threads.
    pub fn processor(&self) -> Processor<'_> {
        match self {
            Self::Cpu(_) => Processor::Given(self),
            Self::Cuda(cuda) => Processor::Own(Box::new(Self::cpu(cuda.n_threads()))),
        }
    }

    /// The processor, for models that a card has no kernels for.
    pub(crate) fn host(&self) -> Result<&Cpu, Error> {
        match self {
            Self::Cpu(cpu) => Ok(cpu),
            Self::Cuda(_) => Err(Error::NoKernels),
        }
    }

    /// What decides the last bits of a result.
    pub fn arithmetic(&self) -> &'static str {
        match self {
            Self::Cpu(cpu) => cpu.isa().name(),
            Self::Cuda(cuda) => match cuda.precision() {
                Precision::Bf16 => "CUDA, bf16",
                Precision::F32 => "CUDA, f32",
            },
        }
    }
}

/// A device that is the processor.
pub enum Processor<'a> {
    /// The one that was given.
    Given(&'a Device),
    /// One beside a card.
    Own(Box<Device>),
}

impl Deref for Processor<'_> {
    type Target = Device;

    fn deref(&self) -> &Device {
        match self {
            Self::Given(device) => device,
            Self::Own(device) => device,
        }
    }
}

impl From<Cpu> for Device {
    fn from(cpu: Cpu) -> Self {
        Self::Cpu(cpu)
    }
}

impl From<Cuda> for Device {
    fn from(cuda: Cuda) -> Self {
        Self::Cuda(cuda)
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

    /// How many threads it has.
    pub fn n_threads(&self) -> usize {
        self.pool.n_threads()
    }

    pub(crate) fn pool(&self) -> &Pool {
        &self.pool
    }

    /// The buffer of one worker; it only ever grows.
    pub(crate) fn scratch(&self, worker: usize) -> MutexGuard<'_, Buffer> {
        self.scratch[worker].lock().unwrap_or_else(PoisonError::into_inner)
    }
}
