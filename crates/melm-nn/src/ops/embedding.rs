//! The first layer: piece, position and type vectors added, normalised, dropped.

use super::norm::{Affine, Normed, denormalise, drop_row, normalise};
use super::{ColumnSums, ROWS_PER_TASK};
use crate::device::Cpu;
use crate::dropout::{Dropout, RowMask, Site};
use crate::isa::per_isa;
use crate::packed::Packed;
use crate::split::Split;

/// The three tables and the first row of the position table that is used.
#[derive(Clone, Copy)]
pub(crate) struct Tables<'a> {
    pub(crate) pieces: &'a [f32],
    pub(crate) positions: &'a [f32],
    pub(crate) kind: &'a [f32],
    pub(crate) first_position: usize,
}

per_isa! {
    fn add_vectors(piece: &[f32], position: &[f32], kind: &[f32], sum: &mut [f32]) {
        for (((sum, a), b), c) in sum.iter_mut().zip(piece).zip(position).zip(kind) {
            *sum = a + c + b;
        }
    }
}

/// The dropout of the embedded row at `place`: its sentence's key and its position.
pub(crate) fn mask(dropout: &Dropout, (sentence, position): (u64, usize)) -> RowMask {
    dropout.row(0, Site::Embedding, sentence, position)
}

/// `y = dropout(norm(piece + position + type))`.
pub(crate) fn forward(
    cpu: &Cpu,
    (batch, places): (&Packed, &[(u64, usize)]),
    (tables, affine, dropout): (Tables<'_>, Affine<'_>, Dropout),
    (normed, y): (Normed<'_>, &mut [f32]),
) {
    let width = affine.weight.len();
    let block = width * ROWS_PER_TASK;
    let parts = (
        Split::every(normed.rows, block),
        Split::every(normed.scale, ROWS_PER_TASK),
        Split::every(y, block),
    );
    cpu.each(batch.n_rows().div_ceil(ROWS_PER_TASK), parts, |task, _, (normed, scale, y)| {
        let rows = normed.chunks_exact_mut(width).zip(y.chunks_exact_mut(width)).zip(scale);
        for (((normed, y), scale), row) in rows.zip(task * ROWS_PER_TASK..) {
            let piece = batch.pieces()[row] as usize;
            let position = tables.first_position + places[row].1;
            add_vectors(
                cpu.isa(),
                &tables.pieces[piece * width..(piece + 1) * width],
                &tables.positions[position * width..(position + 1) * width],
                &tables.kind[..width],
                normed,
            );
            *scale = normalise(cpu.isa(), affine, normed, y);
            drop_row(cpu.isa(), mask(&dropout, places[row]), y);
        }
    });
}

/// Back through [`forward`]: `d` becomes the gradient of each row's three vectors. Returns the shape of the partial
/// sums, in which the norm's weight and bias and the type vector follow each other.
pub(crate) fn backward(
    cpu: &Cpu,
    (weight, dropout, places): (&[f32], Dropout, &[(u64, usize)]),
    (normed, scale): (&[f32], &[f32]),
    (d, sums): (&mut [f32], &mut ColumnSums),
) -> (usize, usize) {
    let width = weight.len();
    let block = width * ROWS_PER_TASK;
    let n_tasks = d.len().div_ceil(block);
    let parts = (Split::every(d, block), Split::every(sums.start(n_tasks, 3 * width), 3 * width));
    cpu.each(n_tasks, parts, |task, _, (d, sums)| {
        let (norm_sums, type_sum) = sums.split_at_mut(2 * width);
        for (d, row) in d.chunks_exact_mut(width).zip(task * ROWS_PER_TASK..) {
            drop_row(cpu.isa(), mask(&dropout, places[row]), d);
            let normed = &normed[row * width..(row + 1) * width];
            denormalise(cpu.isa(), weight, normed, scale[row], d, norm_sums);
            super::add(cpu.isa(), type_sum, d);
        }
    });
    (n_tasks, 3 * width)
}
