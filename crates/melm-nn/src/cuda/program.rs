//! The kernel sources, and the constants that they are compiled with.

use std::fmt::Write as _;

/// The precision of matrix products.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Precision {
    /// bf16 operands with f32 sums and f32 master weights: fast. In training, the products before and after attention
    /// read f32 operands in tf32, which keeps eleven bits.
    #[default]
    Bf16,
    /// f32 throughout, as on the CPU.
    F32,
}

impl Precision {
    /// Bytes of one number of an operand.
    pub(super) fn size(self) -> usize {
        match self {
            Self::Bf16 => 2,
            Self::F32 => 4,
        }
    }
}

/// What a set of kernels is compiled for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct KernelConfig {
    pub(super) hidden: usize,
    pub(super) head_size: usize,
    pub(super) precision: Precision,
    /// True if kernels check every memory access.
    pub(super) is_checked: bool,
}

impl KernelConfig {
    /// Returns the compiler options that define the constants of the sources.
    pub(super) fn definitions(&self) -> [String; 4] {
        [
            format!("-DHIDDEN={}", self.hidden),
            format!("-DHEAD_SIZE={}", self.head_size),
            format!("-DBF16={}", u8::from(self.precision == Precision::Bf16)),
            format!("-DCHECKED={}", u8::from(self.is_checked)),
        ]
    }
}

/// One source file with its kernels.
#[derive(Clone, Copy, Debug)]
pub(super) struct Program {
    pub(super) name: &'static str,
    source: &'static str,
    pub(super) kernels: &'static [Kernel],
}

const COMMON: &str = include_str!("kernels/common.cuh");

impl Program {
    /// Returns the source with the common header before it.
    pub(super) fn text(&self) -> String {
        let mut text = String::with_capacity(COMMON.len() + self.source.len());
        let _ = write!(text, "{COMMON}\n#line 1 \"{}\"\n{}", self.name, self.source);
        text
    }
}

macro_rules! programs {
    ($($file:literal: $($kernel:ident $name:literal),+;)+) => {
        /// A kernel.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(super) enum Kernel { $($($kernel,)+)+ }

        impl Kernel {
            pub(super) const COUNT: usize = [$($($name,)+)+].len();

            /// The name of the kernel in its source.
            pub(super) fn name(self) -> &'static str {
                match self { $($(Self::$kernel => $name,)+)+ }
            }
        }

        /// Every source file.
        pub(super) const PROGRAMS: &[Program] = &[$(Program {
            name: $file,
            source: include_str!(concat!("kernels/", $file)),
            kernels: &[$(Kernel::$kernel,)+],
        },)+];
    };
}

programs! {
    "norm.cu": NormForward "norm_forward", EmbedForward "embed_forward", NormBackward "norm_backward",
        EmbedBackward "embed_backward", PositionGradient "position_gradient";
    "rows.cu": GeluForward "gelu_forward", GeluBackward "gelu_backward", ColumnSums "column_sums",
        ColumnSumsPlain "column_sums_plain", FinishSums "finish_sums", Gather "gather",
        GatherDropped "gather_dropped", Scatter "scatter", RoundWeights "round_weights", AddParts "add_parts";
    "attention.cu": AttentionForward "attention_forward", AttentionBackward "attention_backward";
    "head.cu": ScoreTotals "score_totals", ScoreErrors "score_errors", BiasGradient "bias_gradient",
        BestOfSegments "best_of_segments", BestOfRows "best_of_rows", ScoreLosses "score_losses";
    "adam.cu": Adam "adam", ListLookups "list_lookups", AddLookups "add_lookups", SquareSums "square_sums", GramDot "gram_dot",
        LookupNorm "lookup_norm", FinishNorm "finish_norm";
    "tagger.cu": Classify "classify", ClassifyBackward "classify_backward", ClassifyWeights "classify_weights",
        SoftmaxLoss "softmax_loss", ChainLoss "chain_loss";
    "product.cu": RoundedProduct "rounded_product", PlainProduct "plain_product";
}

/// Rows of one block of the norm's kernels; `ROWS` in `norm.cu`.
pub(super) fn norm_rows(hidden: usize) -> usize {
    match hidden {
        0..=2048 => 4,
        _ => 2,
    }
}

/// Rows whose columns one block adds up; also in `rows.cu`.
pub(super) const ROWS_PER_SUM: usize = 16;

/// Returns the warps of one block of attention, and its queries; `WARPS` and `GROUP * WARPS` in `attention.cu`.
pub(super) fn attention_block(head_size: usize) -> (usize, usize) {
    let warps = if head_size <= 96 { 4 } else { 2 };
    (warps, 4 * warps)
}

/// The largest hidden size whose rows fit the shared memory of a block.
pub(super) const MAX_HIDDEN: usize = 6_144;
/// The largest attention head whose rows fit the shared memory of a block.
pub(super) const MAX_HEAD_SIZE: usize = 148;
/// Blocks that share one row of scores; also in `head.cu`.
pub(super) const SEGMENTS: usize = 8;
/// The most tags of a CRF; `MOST_TAGS` in `tagger.cu`.
pub(super) const MAX_TAGS: usize = 512;
