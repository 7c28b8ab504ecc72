//! The embedding layer: the sum of the piece, position and token-type embeddings, then layer norm, then dropout. Some
//! families have no table of positions or no token types.

use super::norm::{Affine, NormOutput, SavedNorm, drop_row, norm_input_gradient, normalise};
use super::{ColumnSums, ROWS_PER_TASK, RowDropout};
use crate::device::Cpu;
use crate::dropout::Site;
use crate::isa::per_isa;
use crate::split::Split;

/// The layer number that the dropout of the embedding uses.
const LAYER: usize = 0;

/// The embedding tables.
#[derive(Clone, Copy)]
pub(crate) struct Tables<'a> {
    pub(crate) pieces: &'a [f32],
    /// The position table, or `None` if the model has none.
    pub(crate) positions: Option<&'a [f32]>,
    /// The token-type table, or `None` if the model has no token types.
    pub(crate) kinds: Option<&'a [f32]>,
    /// The row of the position table for the first piece of a sentence.
    pub(crate) first_position: usize,
}

per_isa! {
    fn add_vectors(piece: &[f32], position: &[f32], kind: &[f32], sum: &mut [f32]) {
        for (((sum, a), b), c) in sum.iter_mut().zip(piece).zip(position).zip(kind) {
            *sum = a + c + b;
        }
    }
}

per_isa! {
    fn add_two_vectors(piece: &[f32], position: &[f32], sum: &mut [f32]) {
        for ((sum, a), b) in sum.iter_mut().zip(piece).zip(position) {
            *sum = a + b;
        }
    }
}

/// Computes `y = dropout(norm(piece + position + type))`. The type is always 0.
pub(crate) fn forward(
    cpu: &Cpu,
    pieces: &[u32],
    tables: Tables<'_>,
    affine: Affine<'_>,
    dropout: RowDropout<'_>,
    out: NormOutput<'_>,
) {
    let width = affine.weight.len();
    let block = width * ROWS_PER_TASK;
    let NormOutput { normed, scale, y } = out;
    let parts =
        (Split::every(normed, block), Split::every(scale, ROWS_PER_TASK), Split::every(y, block));
    cpu.each(pieces.len().div_ceil(ROWS_PER_TASK), parts, |task, _, (normed, scale, y)| {
        let rows = normed.chunks_exact_mut(width).zip(y.chunks_exact_mut(width)).zip(scale);
        for (((normed, y), scale), row) in rows.zip(task * ROWS_PER_TASK..) {
            let piece = pieces[row] as usize;
            let position = tables.first_position + dropout.places[row].1;
            let piece = &tables.pieces[piece * width..(piece + 1) * width];
            let position = tables.positions.map(|t| &t[position * width..(position + 1) * width]);
            match (position, tables.kinds.map(|kinds| &kinds[..width])) {
                (Some(position), Some(kind)) => {
                    add_vectors(cpu.isa(), piece, position, kind, normed);
                }
                (Some(other), None) | (None, Some(other)) => {
                    add_two_vectors(cpu.isa(), piece, other, normed);
                }
                (None, None) => normed.copy_from_slice(piece),
            }
            *scale = normalise(cpu.isa(), affine, normed, y);
            drop_row(cpu.isa(), dropout.mask(LAYER, Site::Embedding, row), y);
        }
    });
}

/// The backward pass of [`forward`]. Replaces the gradient of `y` in `d` by the gradient of the sum of the embeddings.
///
/// `sums` gets three groups of columns: the gradients of the weight of the norm, of its bias, and of the token-type
/// embedding, which is that of the sum.
pub(crate) fn backward(
    cpu: &Cpu,
    weight: &[f32],
    saved: SavedNorm<'_>,
    dropout: RowDropout<'_>,
    d: &mut [f32],
    sums: &mut ColumnSums,
) {
    let width = weight.len();
    let block = width * ROWS_PER_TASK;
    let n_tasks = d.len().div_ceil(block);
    let parts = (Split::every(d, block), Split::every(sums.start(n_tasks, 3 * width), 3 * width));
    cpu.each(n_tasks, parts, |task, _, (d, sums)| {
        let (norm_sums, type_sum) = sums.split_at_mut(2 * width);
        for (d, row) in d.chunks_exact_mut(width).zip(task * ROWS_PER_TASK..) {
            drop_row(cpu.isa(), dropout.mask(LAYER, Site::Embedding, row), d);
            let normed = &saved.normed[row * width..(row + 1) * width];
            norm_input_gradient(cpu.isa(), weight, normed, saved.scale[row], d, norm_sums);
            super::add(cpu.isa(), type_sum, d);
        }
    });
}
