//! The settings with which a GPU is opened.

use super::program::Precision;
use std::num::NonZeroUsize;
use std::path::PathBuf;

/// The settings with which a GPU is opened.
#[derive(Clone, Debug, Default)]
pub struct CudaSettings {
    /// The index of the GPU, starting at 0.
    pub index: u32,
    /// The precision of matrix products.
    pub precision: Precision,
    /// The number of CPU threads for models that have no GPU kernels; all cores if `None`.
    pub n_threads: Option<NonZeroUsize>,
    /// The folder where compiled kernels are cached; no cache if `None`.
    pub cache: Option<PathBuf>,
    /// Additional folders to search for the CUDA libraries: Python environments or CUDA toolkits.
    pub roots: Vec<PathBuf>,
    /// True if kernels check every memory access. Slow; only for tests.
    pub is_checked: bool,
    /// True if every kernel is launched on its own instead of as part of a CUDA graph. Only for tests and benchmarks.
    pub is_eager: bool,
    /// The maximum number of bytes of GPU memory to use. Only for tests of out-of-memory behaviour.
    pub max_bytes: Option<usize>,
}
