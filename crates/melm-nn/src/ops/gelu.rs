//! The GELU of the feed-forward layers, together with the bias that is added before it.

use super::{ColumnSums, ROWS_PER_TASK};
use crate::device::Cpu;
use crate::isa::per_isa;
use crate::math;
use crate::split::Split;

per_isa! {
    fn forward_row(bias: &[f32], u: &mut [f32], g: &mut [f32]) {
        for ((u, g), bias) in u.iter_mut().zip(g).zip(bias) {
            *u += bias;
            *g = math::gelu(*u);
        }
    }
}

per_isa! {
    fn forward_row_without_bias(u: &[f32], g: &mut [f32]) {
        for (u, g) in u.iter().zip(g) {
            *g = math::gelu(*u);
        }
    }
}

per_isa! {
    fn backward_row(u: &[f32], d: &mut [f32], g: &mut [f32], bias_sum: &mut [f32]) {
        for (((u, d), g), sum) in u.iter().zip(d).zip(g).zip(bias_sum) {
            let (value, slope) = math::gelu_with_slope(*u);
            *g = value;
            *d *= slope;
            *sum += *d;
        }
    }
}

/// Computes `u += bias; g = gelu(u)` for rows of `width` numbers. `bias` is empty if there is none.
pub(crate) fn forward(cpu: &Cpu, width: usize, bias: &[f32], u: &mut [f32], g: &mut [f32]) {
    let block = width * ROWS_PER_TASK;
    let n_tasks = u.len().div_ceil(block);
    let parts = (Split::every(u, block), Split::every(g, block));
    cpu.each(n_tasks, parts, |_, _, (u, g)| {
        for (u, g) in u.chunks_exact_mut(width).zip(g.chunks_exact_mut(width)) {
            if bias.is_empty() {
                forward_row_without_bias(cpu.isa(), u, g);
            } else {
                forward_row(cpu.isa(), bias, u, g);
            }
        }
    });
}

/// Replaces the gradient of `g` in `d` by the gradient of `u`. The column sums of the new `d`, written to `sums`, are
/// the gradient of the bias.
///
/// This pass also computes `g` again, so that the forward pass need not store it.
pub(crate) fn backward(
    cpu: &Cpu,
    width: usize,
    u: &[f32],
    d: &mut [f32],
    g: &mut [f32],
    sums: &mut ColumnSums,
) {
    let block = width * ROWS_PER_TASK;
    let n_tasks = u.len().div_ceil(block);
    let parts = (
        Split::every(d, block),
        Split::every(g, block),
        Split::every(sums.start(n_tasks, width), width),
    );
    cpu.each(n_tasks, parts, |task, _, (d, g, sums)| {
        let u = &u[task * block..];
        for ((u, d), g) in
            u.chunks_exact(width).zip(d.chunks_exact_mut(width)).zip(g.chunks_exact_mut(width))
        {
            backward_row(cpu.isa(), u, d, g, sums);
        }
    });
}
