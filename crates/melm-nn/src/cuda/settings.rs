//! The settings with which a GPU is opened, and what it reports. Builds without CUDA have these types too.

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

/// The precision of matrix products.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Precision {
    /// Operands of products in bf16; sums and master weights in f32. Fast. In training, the products before and after
    /// attention use tf32 instead, whose significand has eleven bits.
    #[default]
    Bf16,
    /// f32 throughout, as on the CPU.
    F32,
}

/// The size of a GPU's memory, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemorySize {
    /// The number of bytes that can still be allocated.
    pub free: usize,
    /// The total number of bytes.
    pub total: usize,
}

/// Counts how recorded command lists were run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct GraphCounts {
    /// The number of command lists that were launched as a graph.
    pub n_replayed: usize,
    /// The number of captured graphs: one for each key, and one more whenever the products of a key change.
    pub n_captured: usize,
    /// The number of command lists that ran command by command: the first list of each key, and lists whose graph
    /// failed.
    pub n_eager: usize,
    /// The number of graphs that the driver refused to capture or update. After a few failures, no further graphs are
    /// tried.
    pub n_failed: usize,
}
