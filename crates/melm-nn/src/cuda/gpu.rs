//! The operations that the CUDA code needs from a GPU: memory, kernel launches, matrix products.
//!
//! [`super::driver::DriverGpu`] implements them with the NVIDIA driver, [`super::emulated::EmulatedGpu`] on the CPU for
//! tests.

use super::commands::{CommandList, GraphKey};
use super::graphs::GraphCounts;
use super::product::Product;
use super::program::{KernelConfig, Program};
use crate::error::Error;
use std::ffi::c_void;

/// A loaded kernel: an index into the list of functions that the GPU keeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Function(pub(super) usize);

/// A kernel with the grid of thread blocks that it runs on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Launch {
    pub(super) function: Function,
    /// Thread blocks in x, y and z.
    pub(super) grid: [u32; 3],
    /// Threads of each block.
    pub(super) n_threads: u32,
}

/// The size of a GPU's memory, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemorySize {
    /// Bytes that can still be allocated.
    pub free: usize,
    /// All bytes of the GPU.
    pub total: usize,
}

/// A GPU with one stream of work. Calls take effect in the order in which they are made.
pub(super) trait Gpu: Send + Sync {
    /// The name of the device, for people.
    fn name(&self) -> &str;

    /// Returns the size of GPU memory.
    fn memory(&self) -> Result<MemorySize, Error>;

    /// The most bytes that were allocated at once.
    fn peak_bytes(&self) -> usize;

    /// Allocates `n_bytes` of memory, filled with zeros. Fails with [`Error::DeviceMemory`] if there is too little.
    fn allocate(&self, n_bytes: usize) -> Result<u64, Error>;

    /// Frees memory that [`Self::allocate`] returned.
    fn free(&self, address: u64);

    /// Copies from CPU memory to GPU memory.
    fn upload(&self, bytes: &[u8], to: u64) -> Result<(), Error>;

    /// Copies from GPU memory to CPU memory; waits until all earlier work is done.
    fn download(&self, from: u64, out: &mut [u8]) -> Result<(), Error>;

    /// Starts to copy from GPU memory without waiting. The copy runs after all earlier work.
    fn begin_download(&self, from: u64, n_bytes: usize) -> Result<(), Error>;

    /// Waits for the copy that [`Self::begin_download`] started, but not for work submitted after it.
    fn end_download(&self, out: &mut [u8]) -> Result<(), Error>;

    /// Copies within GPU memory.
    fn copy(&self, from: u64, to: u64, n_bytes: usize) -> Result<(), Error>;

    /// Fills GPU memory with zeros.
    fn clear(&self, at: u64, n_bytes: usize) -> Result<(), Error>;

    /// Compiles a source file for a model; returns its kernels in the order of [`Program::kernels`].
    fn load(&self, program: &Program, config: KernelConfig) -> Result<Vec<Function>, Error>;

    /// Launches a kernel. `arguments` point to the kernel's arguments, in its order.
    fn launch(&self, launch: Launch, arguments: &mut [*mut c_void]) -> Result<(), Error>;

    /// Returns true if [`Self::product`] supports this product.
    fn has_product(&self, product: &Product) -> Result<bool, Error>;

    /// Computes a matrix product. Fails if [`Self::has_product`] is false for it.
    fn product(&self, product: &Product) -> Result<(), Error>;

    /// Runs recorded commands, as one CUDA graph where possible.
    fn submit(&self, key: GraphKey, commands: CommandList) -> Result<(), Error>;

    /// Returns how recorded commands were run so far.
    fn graph_counts(&self) -> GraphCounts;
}
