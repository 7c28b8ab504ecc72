//! The settings of a GPU.

use super::program::Precision;
use std::num::NonZeroUsize;
use std::path::PathBuf;

/// How a GPU is opened.
#[derive(Clone, Debug, Default)]
pub struct CudaSettings {
    /// The number of the GPU, from 0.
    pub index: u32,
    /// The precision of matrix products.
    pub precision: Precision,
    /// CPU threads for models that have no kernels; all cores if `None`.
    pub n_threads: Option<NonZeroUsize>,
    /// The folder where compiled kernels are cached; no cache if `None`.
    pub cache: Option<PathBuf>,
    /// Further folders to search for CUDA's libraries: Python environments, CUDA toolkits.
    pub roots: Vec<PathBuf>,
    /// True if kernels check every memory access: slow, for tests.
    pub is_checked: bool,
    /// True if every kernel is launched by itself instead of in a CUDA graph: for tests and benchmarks.
    pub is_eager: bool,
    /// The most bytes of GPU memory to use: for tests of short memory.
    pub max_bytes: Option<usize>,
}
