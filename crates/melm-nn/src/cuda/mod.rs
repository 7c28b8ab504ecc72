//! Trains and runs the models on NVIDIA GPUs.
//!
//! Weights, moments, gradients and activations are stored in GPU memory. The CPU sends pieces and receives losses and
//! predictions. When a model is saved, its weights are copied to the CPU. cuBLASLt computes the matrix products. The
//! kernels in `kernels/` compute everything else; they are compiled when a model is first used. No result
//! depends on the order in which thread blocks run, so that the same step always gives the same bits. The driver and
//! the libraries are loaded when a GPU is opened. The program can be built and started without them.
//!
//! The files, in the order in which a training step uses them:
//!
//! | file | content |
//! | --- | --- |
//! | `mod.rs`, `settings.rs` | [`Cuda`]: an open GPU with its kernels and workspace; [`CudaSettings`] |
//! | `library.rs` | finds and loads the driver, NVRTC and cuBLASLt |
//! | `gpu.rs` | the trait `Gpu`: memory, kernel launches, matrix products |
//! | `driver.rs`, `pinned.rs` | implement `Gpu` with the CUDA driver; its memory for copies to the CPU |
//! | `downloads.rs` | which memory for copies to the CPU is in use |
//! | `emulated.rs` | implements `Gpu` on the CPU, for tests without a GPU |
//! | `program.rs`, `compile.rs` | the kernel sources; their compilation with NVRTC and the cache of compiled kernels |
//! | `kernels.rs` | launches kernels or records the launches |
//! | `span.rs`, `memory.rs` | ranges of GPU memory; buffers, arena, staging buffer |
//! | `weights.rs` | a model's parameters in GPU memory |
//! | `inputs.rs`, `tape.rs` | the lists of a batch that kernels read; the activation buffers of a pass |
//! | `pass.rs` | prepares a pass: weights, inputs, buffers, gradients |
//! | `forward.rs`, `backward.rs` | the forward and the backward pass of the encoder |
//! | `attention.rs`, `dropout_bits.rs`, `weight_products.rs` | attention's backward pass; its dropout; the gradients of weights |
//! | `transform.rs` | the dense layer and the norm of a head |
//! | `masked_lm.rs`, `predict.rs` | the masked language model: training and prediction |
//! | `tagger.rs` | the tagger: training and emissions |
//! | `product.rs` | the description of a matrix product |
//! | `blas.rs`, `plan_key.rs` | matrix products by cuBLASLt; the cache key of its algorithms |
//! | `sums.rs`, `gradients.rs` | sums over rows in a fixed order; the gradients of a step |
//! | `commands.rs`, `graphs.rs` | recorded commands; CUDA graphs that run them |
//! | `adam.rs`, `moments.rs`, `clip.rs` | the Adam optimiser; its state in GPU memory; gradient clipping |

mod adam;
mod attention;
#[cfg(all(test, feature = "emulated"))]
mod attention_tests;
mod backward;
mod blas;
mod clip;
mod commands;
mod compile;
mod downloads;
mod driver;
mod dropout_bits;
#[cfg(feature = "emulated")]
mod emulated;
mod forward;
mod gpu;
mod gradients;
mod graphs;
mod inputs;
mod kernels;
mod library;
mod masked_lm;
mod memory;
mod moments;
mod pass;
mod pinned;
mod plan_key;
mod predict;
mod product;
mod program;
mod settings;
mod span;
mod sums;
mod tagger;
mod tape;
mod transform;
mod views;
mod weight_products;
mod weights;

pub use settings::{CudaSettings, GraphCounts, MemorySize, Precision};

pub(crate) use gradients::GpuGradients;
pub(crate) use kernels::Kernels;
pub(crate) use moments::GpuMoments;
pub(crate) use views::{MaskedLmView, MaskedQuery, TaggerView};
pub(crate) use weights::GpuWeights;

use crate::config::Config;
use crate::error::Error;
use gpu::Gpu;
use memory::{DeviceBuffer, StagingBuffer};
use product::{Operand, Product, ProductSize};
use program::{KernelConfig, Switches};
use std::collections::HashMap;
use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// An open GPU, with the kernels compiled for it and a workspace that all passes reuse.
pub struct Cuda {
    gpu: Arc<dyn Gpu>,
    index: u32,
    precision: Precision,
    n_threads: Option<NonZeroUsize>,
    is_checked: bool,
    kernels: Mutex<HashMap<KernelConfig, Arc<Kernels>>>,
    workspace: Mutex<Workspace>,
}

/// The GPU memory of the current pass.
struct Workspace {
    arena: DeviceBuffer,
    staging: StagingBuffer,
    /// The buffer to which the staged lists are uploaded.
    staging_block: DeviceBuffer,
    /// The buffer to which the list of the backward pass's sums is uploaded.
    sums_block: DeviceBuffer,
}

impl Cuda {
    /// Opens a GPU.
    ///
    /// Fails with [`Error::NoCuda`] if the GPU, the driver or a library is not found, and with [`Error::Cuda`] if the
    /// driver refuses a call.
    pub fn open(settings: &CudaSettings) -> Result<Self, Error> {
        let gpu: Arc<dyn Gpu> = Arc::new(driver::DriverGpu::open(settings)?);
        Ok(Self::with_gpu(gpu, settings))
    }

    /// Opens an emulated GPU, which runs the kernels on the CPU, one thread after another. Only for tests on machines
    /// without a GPU.
    #[cfg(feature = "emulated")]
    pub fn emulated(settings: &CudaSettings) -> Result<Self, Error> {
        Ok(Self::with_gpu(Arc::new(emulated::EmulatedGpu::new(settings)), settings))
    }

    /// Opens an emulated GPU that is lost after this many uploads: every later call fails. Each pass has one upload. Only for
    /// tests.
    #[cfg(feature = "emulated")]
    pub fn emulated_until(settings: &CudaSettings, n_uploads: usize) -> Result<Self, Error> {
        let gpu = emulated::EmulatedGpu::new(settings).failing_after(n_uploads);
        Ok(Self::with_gpu(Arc::new(gpu), settings))
    }

    fn with_gpu(gpu: Arc<dyn Gpu>, settings: &CudaSettings) -> Self {
        let workspace = Workspace {
            arena: DeviceBuffer::empty(&gpu),
            staging: StagingBuffer::default(),
            staging_block: DeviceBuffer::empty(&gpu),
            sums_block: DeviceBuffer::empty(&gpu),
        };
        Self {
            gpu,
            index: settings.index,
            precision: settings.precision,
            n_threads: settings.n_threads,
            is_checked: settings.is_checked,
            kernels: Mutex::default(),
            workspace: Mutex::new(workspace),
        }
    }

    /// The number of CPU threads for models that have no GPU kernels.
    pub(crate) fn n_threads(&self) -> usize {
        self.n_threads.map_or_else(crate::device::n_cores, usize::from)
    }

    /// The index of the GPU among those that the driver lists.
    pub fn index(&self) -> u32 {
        self.index
    }

    /// The name of the GPU.
    pub fn name(&self) -> &str {
        self.gpu.name()
    }

    /// The precision of matrix products.
    pub fn precision(&self) -> Precision {
        self.precision
    }

    /// Returns the size of GPU memory.
    pub fn memory(&self) -> Result<MemorySize, Error> {
        self.gpu.memory()
    }

    /// The highest number of bytes of GPU memory that were allocated at the same time.
    pub fn peak_bytes(&self) -> usize {
        self.gpu.peak_bytes()
    }

    /// Returns how often passes ran as CUDA graphs.
    pub fn graph_counts(&self) -> GraphCounts {
        self.gpu.graph_counts()
    }

    /// Waits until the GPU has finished all submitted work.
    pub fn synchronize(&self) -> Result<(), Error> {
        self.gpu.download(0, &mut [])
    }

    /// Measures the speed of one matrix product of a layer, in operations per second, as [`crate::probe::LinearProbe`]
    /// does for the CPU.
    pub fn measure_flops(&self, config: &Config, n_rows: usize) -> Result<f64, Error> {
        let kernels = self.kernels(config)?;
        let (m, n, k) = (n_rows, config.intermediate_size, config.hidden_size);
        let mut workspace = self.workspace();
        let (x, weight, out) = workspace.arena.lay_out(self.precision.size(), |arena| {
            (arena.operand(m * k), arena.operand(n * k), arena.span::<f32>(m * n))
        })?;
        let (x, weight) = (Operand::new(x, k), Operand::new(weight, k).transposed());
        let product = Product::new(ProductSize { m, n, k }, x, weight, out);
        let run = |times: u32| {
            (0..times).try_for_each(|_| kernels.product(&product))?;
            self.synchronize()
        };
        run(N_PROBES)?;
        let begun = std::time::Instant::now();
        run(N_PROBES)?;
        let operations = 2.0 * (m * n * k) as f64 * f64::from(N_PROBES);
        Ok(operations / begun.elapsed().as_secs_f64())
    }

    /// Returns the kernels for a model. Compiles them on first use.
    fn kernels(&self, config: &Config) -> Result<Arc<Kernels>, Error> {
        let config = KernelConfig {
            hidden: config.hidden_size,
            head_size: config.hidden_size / config.n_heads,
            precision: self.precision,
            is_checked: self.is_checked,
            switches: Switches::new(config),
        };
        if config.hidden > program::MAX_HIDDEN || config.head_size > program::MAX_HEAD_SIZE {
            let KernelConfig { hidden, head_size, .. } = config;
            let reason = format!("its hidden size is {hidden}, its head size {head_size}");
            return Err(Error::Cuda { what: "a model this large", reason });
        }
        let mut known = self.kernels.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(kernels) = known.get(&config) {
            return Ok(Arc::clone(kernels));
        }
        let kernels = Arc::new(Kernels::load(&self.gpu, config)?);
        known.insert(config, Arc::clone(&kernels));
        Ok(kernels)
    }

    fn workspace(&self) -> MutexGuard<'_, Workspace> {
        self.workspace.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns `result`, unless it is an out-of-memory error and `can_retry` is true. In that case, frees the memory of
    /// the passes and returns the result of `retry`.
    fn retry_if_out_of_memory<T>(
        &self,
        result: Result<T, Error>,
        can_retry: bool,
        retry: impl FnOnce() -> Result<T, Error>,
    ) -> Result<T, Error> {
        match result {
            Err(Error::DeviceMemory { .. }) if can_retry => {
                self.workspace().arena.release();
                retry()
            }
            done => done,
        }
    }
}

/// The number of parts into which long sums over the vocabulary are split: enough to keep a whole GPU busy.
const SPLITS: usize = 32;

/// The number of products that are timed to measure the speed of a GPU.
const N_PROBES: u32 = 50;

/// Converts a count to the type that kernels take.
fn to_u32(n: usize) -> u32 {
    u32::try_from(n).expect("fewer than 2^32 of anything in a batch")
}
