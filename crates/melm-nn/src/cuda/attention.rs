//! The launch of the backward kernels of attention.

use super::forward::Heads;
use super::inputs::{AttentionTile, Inputs};
use super::kernels::{Argument, Grid, Kernels, launch};
use super::span::Span;
use crate::error::Error;

/// What the backward pass of attention reads.
pub(super) struct AttentionBackward {
    pub(super) heads: Heads,
    /// Two blocks in z: one for the gradients of queries, one for the gradients of keys and values.
    pub(super) grid: Grid,
    pub(super) inputs: Inputs,
    /// The context in f32: the backward pass subtracts nearly equal numbers, whose difference would be lost in the rounding
    /// to bf16.
    pub(super) context: Span<f32>,
    pub(super) log_sums: Span<f32>,
    pub(super) d_context: Span<f32>,
    /// A buffer for the kernels on tensor cores, `[rows, heads]`.
    pub(super) queries: Span<AttentionQuery>,
}

impl AttentionBackward {
    /// Computes the gradient of queries, keys and values.
    pub(super) fn launch(&self, kernels: &Kernels, d_qkv: Span<u16>) -> Result<(), Error> {
        let Self { heads, grid, inputs, context, log_sums, d_context, queries } = *self;
        let tiles = inputs.tiles;
        if inputs.block.uses_tensor_cores {
            let prepare = Grid::linear(queries.len().div_ceil(4), 32 * 4);
            launch!(
                kernels,
                TensorAttentionQueries,
                prepare,
                context,
                d_context,
                log_sums,
                queries,
            );
            let arguments = TensorArguments { heads, tiles, queries, d_context };
            launch!(kernels, TensorAttentionBackward, grid, arguments, d_qkv);
        } else {
            let arguments = PlainArguments { heads, tiles, context, log_sums, d_context };
            launch!(kernels, AttentionBackward, grid, arguments, d_qkv);
        }
        Ok(())
    }
}

/// What the backward pass needs of a query (`Query` in `tensor_attention.cu`).
#[repr(C, align(16))]
#[derive(Clone, Copy)]
pub(super) struct AttentionQuery {
    mean: f32,
    log_sum: f32,
    largest: f32,
    unused: u32,
}

/// `Backward` in `tensor_attention.cu`.
#[repr(C)]
#[derive(Clone, Copy)]
struct TensorArguments {
    heads: Heads,
    tiles: Span<AttentionTile>,
    queries: Span<AttentionQuery>,
    d_context: Span<f32>,
}

impl Argument for TensorArguments {}

/// `Backward` in `attention.cu`.
#[repr(C)]
#[derive(Clone, Copy)]
struct PlainArguments {
    heads: Heads,
    tiles: Span<AttentionTile>,
    context: Span<f32>,
    log_sums: Span<f32>,
    d_context: Span<f32>,
}

impl Argument for PlainArguments {}
