//! The devices that models are trained and run on.

use crate::buffer::Buffer;
pub use crate::cores::n_cores;
use crate::cuda::{Cuda, Precision};
use crate::error::Error;
use crate::isa::Isa;
use crate::pool::Pool;
use std::fmt;
use std::ops::Deref;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// A device that models are trained and run on.
pub enum Device {
    /// The CPU.
    Cpu(Cpu),
    /// An NVIDIA GPU.
    Cuda(Cuda),
}

impl Device {
    /// Returns the CPU with `n_threads` threads and the best instruction set it has.
    pub fn cpu(n_threads: usize) -> Self {
        Self::Cpu(Cpu::new(n_threads))
    }

    /// Returns the CPU with as many threads as there are physical cores; see [`n_cores`].
    pub fn all_cores() -> Self {
        Self::cpu(n_cores())
    }

    /// Returns the number of CPU threads: those of the CPU, or those that the GPU was opened with.
    pub fn n_threads(&self) -> usize {
        match self {
            Self::Cpu(cpu) => cpu.n_threads(),
            Self::Cuda(cuda) => cuda.n_threads(),
        }
    }

    /// Returns this device if it is the CPU, otherwise a new CPU device with as many threads as the GPU was opened
    /// with.
    ///
    /// Use it for models without GPU kernels. Their results do not depend on the number of threads.
    pub fn to_cpu(&self) -> CpuDevice<'_> {
        match self {
            Self::Cpu(_) => CpuDevice::Borrowed(self),
            Self::Cuda(_) => CpuDevice::Owned(Box::new(Self::cpu(self.n_threads()))),
        }
    }

    /// Returns the CPU, for models without GPU kernels. Fails with [`Error::NoKernels`] if the device is a GPU.
    pub(crate) fn require_cpu(&self) -> Result<&Cpu, Error> {
        match self {
            Self::Cpu(cpu) => Ok(cpu),
            Self::Cuda(_) => Err(Error::NoKernels),
        }
    }

    /// Returns the name of the arithmetic in use: the instruction set of the CPU or the precision of the GPU. Results
    /// computed with different arithmetic differ in their last bits.
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

/// Writes the kind of device, its size and its arithmetic, such as `cpu, 2 threads, AVX-512`.
impl fmt::Display for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Cpu(cpu) => {
                let n = cpu.n_threads();
                let threads = if n == 1 { "thread" } else { "threads" };
                write!(f, "cpu, {n} {threads}, {}", cpu.isa().name())
            }
            Self::Cuda(cuda) => {
                let precision = match cuda.precision() {
                    Precision::Bf16 => "bf16",
                    Precision::F32 => "f32",
                };
                write!(f, "cuda:{}, {}, {precision}", cuda.index(), cuda.name())
            }
        }
    }
}

/// A [`Device`] that is known to be the CPU; see [`Device::to_cpu`].
pub enum CpuDevice<'a> {
    /// The device of the caller.
    Borrowed(&'a Device),
    /// A new CPU device, because the device of the caller is a GPU.
    Owned(Box<Device>),
}

impl Deref for CpuDevice<'_> {
    type Target = Device;

    fn deref(&self) -> &Device {
        match self {
            Self::Borrowed(device) => device,
            Self::Owned(device) => device,
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

/// The CPU: a thread pool, an instruction set, and working memory that is allocated once.
pub struct Cpu {
    pool: Pool,
    isa: Isa,
    /// One buffer for each thread. It holds the panels of a matrix product or the attention of one sentence.
    scratch: Vec<Mutex<Buffer>>,
}

impl Cpu {
    /// Starts `n_threads` threads, and uses the best instruction set the CPU has.
    pub fn new(n_threads: usize) -> Self {
        Self::with_isa(n_threads, Isa::detect())
    }

    /// Starts `n_threads` threads, and uses the given instruction set.
    pub fn with_isa(n_threads: usize, isa: Isa) -> Self {
        let pool = Pool::new(n_threads);
        let scratch = (0..pool.n_threads()).map(|_| Mutex::default()).collect();
        Self { pool, isa, scratch }
    }

    /// Returns the instruction set in use.
    pub fn isa(&self) -> Isa {
        self.isa
    }

    /// Returns the number of threads.
    pub fn n_threads(&self) -> usize {
        self.pool.n_threads()
    }

    pub(crate) fn pool(&self) -> &Pool {
        &self.pool
    }

    /// Locks the buffer of one worker. The buffer grows on demand and never shrinks.
    pub(crate) fn scratch(&self, worker: usize) -> MutexGuard<'_, Buffer> {
        self.scratch[worker].lock().unwrap_or_else(PoisonError::into_inner)
    }
}
