//! The operations that the CUDA code needs from a GPU: memory, kernel launches, matrix products.
//!
//! [`super::driver::DriverGpu`] implements the trait with the NVIDIA driver. [`super::emulated::EmulatedGpu`]
//! implements it on the CPU, for tests.

use super::commands::{CommandList, GraphKey};
use super::downloads::Download;
use super::product::Product;
use super::program::{KernelConfig, Program};
use super::settings::{GraphCounts, MemorySize};
use crate::error::Error;
use std::ffi::c_void;

/// A loaded kernel: its index in the GPU's list of functions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Function(pub(super) usize);

/// A kernel and the grid of thread blocks that it runs on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Launch {
    pub(super) function: Function,
    /// The number of thread blocks in x, y and z.
    pub(super) grid: [u32; 3],
    /// The number of threads in each block.
    pub(super) n_threads: u32,
}

/// A GPU with one stream. Operations run in the order of the calls.
pub(super) trait Gpu: Send + Sync {
    /// The name of the device, to show to users.
    fn name(&self) -> &str;

    /// Returns the size of GPU memory.
    fn memory(&self) -> Result<MemorySize, Error>;

    /// The highest number of bytes that were allocated at the same time.
    fn peak_bytes(&self) -> usize;

    /// Allocates `n_bytes` of memory, filled with zeros. Fails with [`Error::DeviceMemory`] if too little memory is
    /// free.
    fn allocate(&self, n_bytes: usize) -> Result<u64, Error>;

    /// Frees memory allocated by [`Self::allocate`].
    fn free(&self, address: u64);

    /// Copies from CPU memory to GPU memory.
    fn upload(&self, bytes: &[u8], to: u64) -> Result<(), Error>;

    /// Copies from GPU memory to CPU memory. Waits until all earlier work is done.
    fn download(&self, from: u64, out: &mut [u8]) -> Result<(), Error>;

    /// Starts a copy from GPU memory to CPU memory and returns at once. The GPU copies after all earlier work is done.
    fn begin_download(&self, from: u64, n_bytes: usize) -> Result<Download, Error>;

    /// Waits for a copy started by [`Self::begin_download`], but not for work submitted after it. Writes the bytes to
    /// `out`, which has as many.
    fn end_download(&self, download: Download, out: &mut [u8]) -> Result<(), Error>;

    /// Copies within GPU memory.
    fn copy(&self, from: u64, to: u64, n_bytes: usize) -> Result<(), Error>;

    /// Fills GPU memory with zeros.
    fn clear(&self, at: u64, n_bytes: usize) -> Result<(), Error>;

    /// Compiles a source file for a model and loads it. Returns the kernels in the order of [`Program::kernels`].
    fn load(&self, program: &Program, config: KernelConfig) -> Result<Vec<Function>, Error>;

    /// Launches a kernel. `arguments` are pointers to the kernel's arguments, in the order of its parameters.
    fn launch(&self, launch: Launch, arguments: &mut [*mut c_void]) -> Result<(), Error>;

    /// Returns true if [`Self::product`] supports this product.
    fn has_product(&self, product: &Product) -> Result<bool, Error>;

    /// Computes a matrix product. Fails if [`Self::has_product`] returns false for the product.
    fn product(&self, product: &Product) -> Result<(), Error>;

    /// Runs recorded commands, as one CUDA graph where possible.
    fn submit(&self, key: GraphKey, commands: CommandList) -> Result<(), Error>;

    /// Returns how often command lists ran as CUDA graphs and how often command by command.
    fn graph_counts(&self) -> GraphCounts;
}
