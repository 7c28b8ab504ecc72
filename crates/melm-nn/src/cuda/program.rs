//! The kernel sources, and the constants defined when they are compiled.

use super::settings::Precision;
use crate::config::Config;

impl Precision {
    /// Returns the size of one number of an operand, in bytes.
    pub(super) fn size(self) -> usize {
        match self {
            Self::Bf16 => 2,
            Self::F32 => 4,
        }
    }
}

/// The model sizes and settings for which kernels are compiled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct KernelConfig {
    pub(super) hidden: usize,
    pub(super) head_size: usize,
    pub(super) precision: Precision,
    /// True if kernels check every memory access.
    pub(super) is_checked: bool,
    pub(super) switches: Switches,
}

/// What some families need and others do not. Kernels contain only the code that the model needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Switches {
    /// True if queries and keys are rotated by their positions, and the embedding layer adds no position vectors.
    pub(super) has_rotary_positions: bool,
    /// True if the attention of some layers is limited to a window.
    pub(super) has_windows: bool,
    /// True if layer norms have a bias.
    pub(super) has_norm_bias: bool,
}

impl Switches {
    pub(super) fn new(config: &Config) -> Self {
        Self {
            has_rotary_positions: !config.has_position_table(),
            has_windows: (0..config.n_layers).any(|layer| config.window(layer).is_some()),
            has_norm_bias: config.architecture().has_biases,
        }
    }
}

impl KernelConfig {
    /// Returns the compiler options that define the constants used in the sources.
    pub(super) fn definitions(&self) -> [String; 7] {
        [
            format!("-DHIDDEN={}", self.hidden),
            format!("-DHEAD_SIZE={}", self.head_size),
            format!("-DBF16={}", u8::from(self.precision == Precision::Bf16)),
            format!("-DCHECKED={}", u8::from(self.is_checked)),
            format!("-DROTARY={}", u8::from(self.switches.has_rotary_positions)),
            format!("-DWINDOWED={}", u8::from(self.switches.has_windows)),
            format!("-DNORM_BIAS={}", u8::from(self.switches.has_norm_bias)),
        ]
    }
}

/// A source file and the kernels that it defines.
#[derive(Clone, Copy, Debug)]
pub(super) struct Program {
    pub(super) name: &'static str,
    /// Text that several programs share and that comes before the source.
    header: &'static str,
    source: &'static str,
    pub(super) kernels: &'static [Kernel],
}

const COMMON: &str = include_str!("kernels/common.cuh");

impl Program {
    /// Returns the source text, preceded by the common header and the program's own.
    pub(super) fn text(&self) -> String {
        let Self { name, header, source, .. } = self;
        format!("{COMMON}\n#line 1 \"header of {name}\"\n{header}\n#line 1 \"{name}\"\n{source}")
    }
}

macro_rules! programs {
    ($($file:literal $(after $($header:literal),+)?: $($kernel:ident $name:literal),+;)+) => {
        /// A kernel of one of the source files.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(super) enum Kernel { $($($kernel,)+)+ }

        impl Kernel {
            pub(super) const COUNT: usize = [$($($name,)+)+].len();

            /// The name of the kernel function in the source.
            pub(super) fn name(self) -> &'static str {
                match self { $($(Self::$kernel => $name,)+)+ }
            }
        }

        /// All source files.
        pub(super) const PROGRAMS: &[Program] = &[$(Program {
            name: $file,
            header: concat!($($(include_str!(concat!("kernels/", $header)),)+)?),
            source: include_str!(concat!("kernels/", $file)),
            kernels: &[$(Kernel::$kernel,)+],
        },)+];
    };
}

programs! {
    "norm.cu": NormForward "norm_forward", EmbedForward "embed_forward", NormBackward "norm_backward",
        EmbedBackward "embed_backward", SumNormForward "sum_norm_forward",
        SumNormBackward "sum_norm_backward";
    "rows.cu": GeluForward "gelu_forward", GeluBackward "gelu_backward",
        GegluForward "geglu_forward", GegluBackward "geglu_backward", DropRows "drop_rows", ColumnSums "column_sums",
        ColumnSumsPlain "column_sums_plain", PositionGradient "position_gradient",
        FinishSums "finish_sums", CopyColumns "copy_columns",
        Gather "gather", GatherDropped "gather_dropped", Scatter "scatter", RoundWeights "round_weights", AddParts "add_parts";
    "attention.cu" after "heads.cuh": AttentionForward "attention_forward", AttentionBackward "attention_backward",
        Rotate "rotate";
    "tensor_attention.cu" after "heads.cuh", "tensor.cuh": TensorAttentionForward "tensor_attention_forward",
        AttentionDropoutBits "attention_dropout_bits", TensorAttentionQueries "tensor_attention_queries",
        TensorAttentionBackward "tensor_attention_backward";
    "head.cu": ScoreTotals "score_totals", ScoreErrors "score_errors",
        BestOfSegments "best_of_segments", BestOfRows "best_of_rows", ScoreLosses "score_losses";
    "adam.cu": Adam "adam", ListLookups "list_lookups", AddLookups "add_lookups", SquareSums "square_sums", GramDot "gram_dot",
        PickColumns "pick_columns", LookupNorm "lookup_norm", FinishNorm "finish_norm";
    "tagger.cu": Classify "classify", ClassifyBackward "classify_backward", ClassifyWeights "classify_weights",
        SoftmaxLoss "softmax_loss", ChainLoss "chain_loss";
    "product.cu": RoundedProduct "rounded_product", PlainProduct "plain_product";
}

/// Returns the number of threads of a row in the layer norm kernels (`THREADS` in `norm.cu`).
pub(super) fn norm_threads(hidden: usize) -> usize {
    hidden.div_ceil(4).next_multiple_of(32).min(256)
}

/// Returns the number of rows that one block of the backward layer norm kernels processes (`ROWS` in `norm.cu`).
pub(super) fn norm_rows(hidden: usize) -> usize {
    match hidden {
        0..=1024 => 6,
        1025..=2048 => 4,
        _ => 2,
    }
}

/// Returns the number of groups of threads of these blocks (`GROUPS` in `norm.cu`).
pub(super) fn norm_groups(hidden: usize) -> usize {
    if hidden <= 1024 { 3 } else { 1 }
}

/// The number of rows that one block adds up, column by column (the same constant is in `rows.cu`).
pub(super) const ROWS_PER_SUM: usize = 16;

/// The number of threads and of columns of these blocks (`4 * QUADS` in `rows.cu`).
pub(super) const COLUMNS_PER_SUM: usize = 256;

/// The number of threads of a block that adds up partial sums, and the number of its columns (`FINISH_QUADS` and
/// `FINISH_GROUPS` in `rows.cu`).
pub(super) const FINISH_THREADS: usize = 256;
pub(super) const FINISH_COLUMNS: usize = 128;

/// The number of rows whose column one thread of the geglu kernels computes (`AT_ONCE` in `rows.cu`).
pub(super) const ROWS_AT_ONCE: usize = 4;

/// The attention kernels of a model, and the size of their thread blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct AttentionBlock {
    /// True for the kernels on tensor cores (`tensor_attention.cu`).
    pub(super) uses_tensor_cores: bool,
    pub(super) n_threads: usize,
    /// The number of queries or keys of a block.
    pub(super) n_rows: usize,
}

/// The largest head for which the kernels on tensor cores keep their rows in registers.
const MAX_TENSOR_HEAD: usize = 96;

impl AttentionBlock {
    /// Chooses the kernels for a model. With f32 precision they are always those of `attention.cu`, because tensor cores
    /// round to f16.
    pub(super) fn new(config: &Config, precision: Precision) -> Self {
        let head_size = config.hidden_size / config.n_heads;
        let uses_tensor_cores = precision == Precision::Bf16 && head_size <= MAX_TENSOR_HEAD;
        if uses_tensor_cores {
            // `N_WARPS` and `OWN` in `tensor.cuh`.
            return Self { uses_tensor_cores, n_threads: 32 * 4, n_rows: 64 };
        }
        // `WARPS` and `GROUP * WARPS` in `attention.cu`.
        let n_warps = if head_size <= 96 { 4 } else { 2 };
        Self { uses_tensor_cores, n_threads: 32 * n_warps, n_rows: 4 * n_warps }
    }
}

/// The largest hidden size for which rows fit into the registers of a block of the layer norm kernels.
pub(super) const MAX_HIDDEN: usize = 6_144;
/// The largest size of an attention head for which the rows of a block fit into its shared memory.
pub(super) const MAX_HEAD_SIZE: usize = 148;
/// The number of blocks that process one row of scores together (the same constant is in `head.cu`).
pub(super) const SEGMENTS: usize = 16;
/// The number of threads and of columns of a block that computes errors (`ERROR_THREADS` in `head.cu`).
pub(super) const ERROR_COLUMNS: usize = 512;
