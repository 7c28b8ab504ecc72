//! The kernels: their sources, and how they are told a model's shape.

use std::fmt::Write as _;

/// What products are computed in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Precision {
    /// bf16 factors, f32 sums and weights: fast. A training's products before and after attention read
    /// f32 with tf32's eleven bits.
    #[default]
    Bf16,
    /// f32 throughout, as on the processor.
    F32,
}

impl Precision {
    /// Bytes of a number that products read.
    pub(super) fn size(self) -> usize {
        match self {
            Self::Bf16 => 2,
            Self::F32 => 4,
        }
    }
}

/// What kernels are compiled for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Shape {
    pub(super) hidden: usize,
    pub(super) head_size: usize,
    pub(super) precision: Precision,
    /// Whether every access to memory is checked.
    pub(super) is_checked: bool,
}

impl Shape {
    /// The constants that the sources expect.
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
    /// All that a compiler needs to see.
    pub(super) fn text(&self) -> String {
        let mut text = String::with_capacity(COMMON.len() + self.source.len());
        let _ = write!(text, "{COMMON}\n#line 1 \"{}\"\n{}", self.name, self.source);
        text
    }
}

macro_rules! programs {
    ($($file:literal: $($kernel:ident $name:literal),+;)+) => {
        /// A kernel, by the name that it has in its source.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(super) enum Kernel { $($($kernel,)+)+ }

        impl Kernel {
            pub(super) const COUNT: usize = [$($($name,)+)+].len();

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

/// Rows of one block of the norm's kernels, as `norm.cu` has it.
pub(super) fn norm_rows(hidden: usize) -> usize {
    match hidden {
        0..=2048 => 4,
        _ => 2,
    }
}

/// Rows whose columns one block sums, as `rows.cu` has it.
pub(super) const ROWS_PER_SUM: usize = 16;
/// Warps of one block of attention, and its queries, as `attention.cu` has it.
pub(super) fn attention_block(head_size: usize) -> (usize, usize) {
    let warps = if head_size <= 96 { 4 } else { 2 };
    (warps, 4 * warps)
}

/// The widest models whose rows fit the shared memory of a block.
pub(super) const MOST_HIDDEN: usize = 6_144;
pub(super) const MOST_HEAD_SIZE: usize = 148;
/// Blocks of one row of scores, as `head.cu` has it.
pub(super) const SEGMENTS: usize = 8;
/// The most tags of a chain, as `tagger.cu` has it.
pub(super) const MOST_TAGS: usize = 512;
