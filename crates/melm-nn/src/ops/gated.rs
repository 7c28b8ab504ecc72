//! The gated GELU of a feed-forward part (GeGLU), together with the dropout that follows it.

use super::ROWS_PER_TASK;
use super::norm::drop_row;
use crate::device::Cpu;
use crate::dropout::RowMask;
use crate::isa::per_isa;
use crate::math;
use crate::split::Split;

per_isa! {
    fn forward_row(u: &[f32], g: &mut [f32]) {
        let (a, b) = u.split_at(g.len());
        for ((g, a), b) in g.iter_mut().zip(a).zip(b) {
            *g = math::gelu(*a) * b;
        }
    }
}

per_isa! {
    fn backward_row(u: &[f32], d: &[f32], g: &mut [f32], du: &mut [f32]) {
        let (a, b) = u.split_at(d.len());
        let (da, db) = du.split_at_mut(d.len());
        for (((((a, b), d), g), da), db) in a.iter().zip(b).zip(d).zip(g).zip(da).zip(db) {
            let (value, slope) = math::gelu_with_slope(*a);
            *g = value * b;
            *da = d * b * slope;
            *db = d * value;
        }
    }
}

/// Computes `g = dropout(gelu(a) * b)`, where `a` and `b` are the first and the second half of a row of `u`. The rows of
/// `g` have `width` numbers. `mask` returns the dropout mask of a row.
pub(crate) fn forward(
    cpu: &Cpu,
    width: usize,
    u: &[f32],
    mask: impl Fn(usize) -> RowMask + Sync,
    g: &mut [f32],
) {
    let n_tasks = g.len().div_ceil(width * ROWS_PER_TASK);
    cpu.each(n_tasks, Split::every(g, width * ROWS_PER_TASK), |task, _, g| {
        for (g, row) in g.chunks_exact_mut(width).zip(task * ROWS_PER_TASK..) {
            forward_row(cpu.isa(), &u[2 * row * width..2 * (row + 1) * width], g);
            drop_row(cpu.isa(), mask(row), g);
        }
    });
}

/// The gradients that [`backward`] reads and writes.
pub(crate) struct GatedGradients<'a> {
    /// On entry the gradient of `g`. It is overwritten.
    pub(crate) d: &'a mut [f32],
    /// On return the rows of [`forward`]. They are computed again, so that the forward pass need not store them.
    pub(crate) g: &'a mut [f32],
    /// On return the gradient of `u`.
    pub(crate) du: &'a mut [f32],
}

/// The backward pass of [`forward`].
pub(crate) fn backward(
    cpu: &Cpu,
    width: usize,
    u: &[f32],
    mask: impl Fn(usize) -> RowMask + Sync,
    gradients: GatedGradients<'_>,
) {
    let GatedGradients { d, g, du } = gradients;
    let block = width * ROWS_PER_TASK;
    let n_tasks = g.len().div_ceil(block);
    let parts = (Split::every(d, block), Split::every(g, block), Split::every(du, 2 * block));
    cpu.each(n_tasks, parts, |task, _, (d, g, du)| {
        let rows = d.chunks_exact_mut(width).zip(g.chunks_exact_mut(width));
        let rows = rows.zip(du.chunks_exact_mut(2 * width)).zip(task * ROWS_PER_TASK..);
        for (((d, g), du), row) in rows {
            let mask = mask(row);
            drop_row(cpu.isa(), mask, d);
            backward_row(cpu.isa(), &u[2 * row * width..2 * (row + 1) * width], d, g, du);
            drop_row(cpu.isa(), mask, g);
        }
    });
}
