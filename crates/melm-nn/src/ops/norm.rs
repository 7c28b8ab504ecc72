//! Layer norm with its backward pass: alone, or with bias, dropout and residual before it.

use super::{ColumnSums, ROWS_PER_TASK};
use crate::device::Cpu;
use crate::dropout::RowMask;
use crate::isa::per_isa;
use crate::math::sum_of;
use crate::split::Split;

/// The weight, the bias and the epsilon of a layer norm.
#[derive(Clone, Copy)]
pub(crate) struct Affine<'a> {
    pub(crate) weight: &'a [f32],
    /// Empty if the norm has no bias.
    pub(crate) bias: &'a [f32],
    pub(crate) eps: f32,
}

/// The outputs of a layer norm: the rows `y`, and the values that the backward pass needs.
pub(crate) struct NormOutput<'a> {
    /// The normalised rows before weight and bias are applied.
    pub(crate) normed: &'a mut [f32],
    /// One over the standard deviation of each row.
    pub(crate) scale: &'a mut [f32],
    pub(crate) y: &'a mut [f32],
}

/// The values of [`NormOutput`] that the backward pass reads.
#[derive(Clone, Copy)]
pub(crate) struct SavedNorm<'a> {
    pub(crate) normed: &'a [f32],
    pub(crate) scale: &'a [f32],
}

/// The rows that [`forward`] adds to its input.
pub(crate) enum ResidualRows<'a> {
    /// Rows that do not change.
    Fixed(&'a [f32]),
    /// A running sum, which is replaced by the new sum.
    Running(&'a mut [f32]),
}

/// The inputs of [`forward`].
pub(crate) struct ResidualInputs<'a> {
    pub(crate) x: &'a [f32],
    /// Empty if there is no bias. A running sum takes no bias.
    pub(crate) bias: &'a [f32],
    pub(crate) residual: ResidualRows<'a>,
}

/// The gradients that [`backward`] reads and writes.
pub(crate) struct ResidualGradients<'a> {
    /// On entry the gradient of `y`. On return the gradient of the sum through `y`.
    pub(crate) d: &'a mut [f32],
    /// With a running sum, its gradient: on entry without the part through `y`, on return with it.
    pub(crate) d_running: Option<&'a mut [f32]>,
    /// On return the gradient of `x`.
    pub(crate) dx: &'a mut [f32],
}

per_isa! {
    /// Normalises `row` in place, and writes the row after weight and bias to `y`. Returns one over the standard
    /// deviation.
    pub(crate) fn normalise(affine: Affine<'_>, row: &mut [f32], y: &mut [f32]) -> f32 {
        let n = row.len() as f32;
        let mean = sum_of(row, row, |x, _| x) / n;
        let variance = sum_of(row, row, |x, _| (x - mean) * (x - mean)) / n;
        let scale = 1.0 / (variance + affine.eps).sqrt();
        if affine.bias.is_empty() {
            for ((x, y), weight) in row.iter_mut().zip(y).zip(affine.weight) {
                *x = (*x - mean) * scale;
                *y = *x * weight;
            }
            return scale;
        }
        for (((x, y), weight), bias) in row.iter_mut().zip(y).zip(affine.weight).zip(affine.bias) {
            *x = (*x - mean) * scale;
            *y = *x * weight + bias;
        }
        scale
    }
}

per_isa! {
    /// Replaces the gradient of the output of the norm in `d` by the gradient of its input. Adds the gradients of
    /// weight and bias to `sums`.
    pub(crate) fn norm_input_gradient(weight: &[f32], normed: &[f32], scale: f32, d: &mut [f32], sums: &mut [f32]) {
        let width = d.len();
        let (weight_sums, rest) = sums.split_at_mut(width);
        for ((((d, x), w), ws), bs) in d.iter_mut().zip(normed).zip(weight).zip(weight_sums).zip(rest) {
            *ws += *d * x;
            *bs += *d;
            *d *= w;
        }
        let mean = sum_of(d, d, |d, _| d) / width as f32;
        let slope = sum_of(d, normed, |d, x| d * x) / width as f32;
        for (d, x) in d.iter_mut().zip(normed) {
            *d = scale * (*d - mean - x * slope);
        }
    }
}

per_isa! {
    /// Computes `sum = residual + dropout(x + bias)`.
    fn add_residual(mask: RowMask, x: &[f32], bias: &[f32], residual: &[f32], sum: &mut [f32]) {
        if mask.keeps_all() {
            for (((sum, x), bias), residual) in sum.iter_mut().zip(x).zip(bias).zip(residual) {
                *sum = x + bias + residual;
            }
        } else {
            for ((((sum, x), bias), residual), column) in sum.iter_mut().zip(x).zip(bias).zip(residual).zip(0_u32..) {
                *sum = (x + bias) * mask.factor(column) + residual;
            }
        }
    }
}

per_isa! {
    /// Computes `sum += dropout(x)`.
    fn add_to_residual(mask: RowMask, x: &[f32], sum: &mut [f32]) {
        if mask.keeps_all() {
            for (sum, x) in sum.iter_mut().zip(x) {
                *sum += x;
            }
        } else {
            for ((sum, x), column) in sum.iter_mut().zip(x).zip(0_u32..) {
                *sum += x * mask.factor(column);
            }
        }
    }
}

per_isa! {
    pub(crate) fn drop_row(mask: RowMask, row: &mut [f32]) {
        if !mask.keeps_all() {
            for (x, column) in row.iter_mut().zip(0_u32..) {
                *x *= mask.factor(column);
            }
        }
    }
}

per_isa! {
    /// Computes `out = dropout(d)`, and adds `out` to `bias_sum`.
    pub(crate) fn drop_gradient(mask: RowMask, d: &[f32], out: &mut [f32], bias_sum: &mut [f32]) {
        if mask.keeps_all() {
            out.copy_from_slice(d);
            for (sum, d) in bias_sum.iter_mut().zip(d) {
                *sum += d;
            }
        } else {
            for (((out, d), sum), column) in out.iter_mut().zip(d).zip(bias_sum).zip(0_u32..) {
                *out = d * mask.factor(column);
                *sum += *out;
            }
        }
    }
}

/// Computes `y = norm(residual + dropout(x + bias))`, row by row. `mask` returns the dropout mask of a row.
pub(crate) fn forward(
    cpu: &Cpu,
    inputs: ResidualInputs<'_>,
    affine: Affine<'_>,
    mask: impl Fn(usize) -> RowMask + Sync,
    out: NormOutput<'_>,
) {
    let ResidualInputs { x, bias, residual } = inputs;
    let residual = match residual {
        ResidualRows::Fixed(residual) => residual,
        ResidualRows::Running(sum) => {
            assert!(bias.is_empty(), "no family has biases and a running sum");
            return forward_running(cpu, x, affine, mask, sum, out);
        }
    };
    let width = affine.weight.len();
    let block = width * ROWS_PER_TASK;
    let NormOutput { normed, scale, y } = out;
    let parts =
        (Split::every(normed, block), Split::every(scale, ROWS_PER_TASK), Split::every(y, block));
    cpu.each(x.len().div_ceil(block), parts, |task, _, (normed, scale, y)| {
        let rows = normed.chunks_exact_mut(width).zip(y.chunks_exact_mut(width)).zip(scale);
        for (((normed, y), scale), row) in rows.zip(task * ROWS_PER_TASK..) {
            let at = row * width..(row + 1) * width;
            add_residual(cpu.isa(), mask(row), &x[at.clone()], bias, &residual[at], normed);
            *scale = normalise(cpu.isa(), affine, normed, y);
        }
    });
}

/// The backward pass of [`forward`].
///
/// `sums` gets three groups of columns: the gradients of the weight of the norm, of its bias, and of the bias that is
/// added to `x`.
pub(crate) fn backward(
    cpu: &Cpu,
    weight: &[f32],
    saved: SavedNorm<'_>,
    mask: impl Fn(usize) -> RowMask + Sync,
    gradients: ResidualGradients<'_>,
    sums: &mut ColumnSums,
) {
    let width = weight.len();
    let block = width * ROWS_PER_TASK;
    let ResidualGradients { d, d_running, dx } = gradients;
    let n_tasks = d.len().div_ceil(block);
    if let Some(d_running) = d_running {
        let gradients = [d, d_running, dx];
        return backward_running(cpu, weight, saved, mask, gradients, sums);
    }
    let parts = (
        Split::every(d, block),
        Split::every(dx, block),
        Split::every(sums.start(n_tasks, 3 * width), 3 * width),
    );
    cpu.each(n_tasks, parts, |task, _, (d, dx, sums)| {
        let (norm_sums, bias_sum) = sums.split_at_mut(2 * width);
        let rows = d.chunks_exact_mut(width).zip(dx.chunks_exact_mut(width));
        for ((d, dx), row) in rows.zip(task * ROWS_PER_TASK..) {
            let normed = &saved.normed[row * width..(row + 1) * width];
            norm_input_gradient(cpu.isa(), weight, normed, saved.scale[row], d, norm_sums);
            drop_gradient(cpu.isa(), mask(row), d, dx, bias_sum);
        }
    });
}

/// Computes `sum += dropout(x)` and `y = norm(sum)`, row by row.
fn forward_running(
    cpu: &Cpu,
    x: &[f32],
    affine: Affine<'_>,
    mask: impl Fn(usize) -> RowMask + Sync,
    sum: &mut [f32],
    out: NormOutput<'_>,
) {
    let width = affine.weight.len();
    let block = width * ROWS_PER_TASK;
    let NormOutput { normed, scale, y } = out;
    let parts = (
        Split::every(sum, block),
        (Split::every(normed, block), Split::every(scale, ROWS_PER_TASK), Split::every(y, block)),
    );
    cpu.each(x.len().div_ceil(block), parts, |task, _, (sum, (normed, scale, y))| {
        let rows = normed.chunks_exact_mut(width).zip(y.chunks_exact_mut(width)).zip(scale);
        let rows = rows.zip(sum.chunks_exact_mut(width)).zip(task * ROWS_PER_TASK..);
        for ((((normed, y), scale), sum), row) in rows {
            add_to_residual(cpu.isa(), mask(row), &x[row * width..(row + 1) * width], sum);
            normed.copy_from_slice(sum);
            *scale = normalise(cpu.isa(), affine, normed, y);
        }
    });
}

/// The backward pass of [`forward_running`]. The gradients are those of [`ResidualGradients`], in their order.
fn backward_running(
    cpu: &Cpu,
    weight: &[f32],
    saved: SavedNorm<'_>,
    mask: impl Fn(usize) -> RowMask + Sync,
    [d, d_sum, dx]: [&mut [f32]; 3],
    sums: &mut ColumnSums,
) {
    let width = weight.len();
    let block = width * ROWS_PER_TASK;
    let n_tasks = d.len().div_ceil(block);
    let parts = (
        (Split::every(d, block), Split::every(d_sum, block), Split::every(dx, block)),
        Split::every(sums.start(n_tasks, 3 * width), 3 * width),
    );
    cpu.each(n_tasks, parts, |task, _, ((d, d_sum, dx), sums)| {
        let (norm_sums, bias_sum) = sums.split_at_mut(2 * width);
        let rows = d.chunks_exact_mut(width).zip(d_sum.chunks_exact_mut(width));
        let rows = rows.zip(dx.chunks_exact_mut(width)).zip(task * ROWS_PER_TASK..);
        for (((d, d_sum), dx), row) in rows {
            let normed = &saved.normed[row * width..(row + 1) * width];
            norm_input_gradient(cpu.isa(), weight, normed, saved.scale[row], d, norm_sums);
            super::add(cpu.isa(), d_sum, d);
            drop_gradient(cpu.isa(), mask(row), d_sum, dx, bias_sum);
        }
    });
}

/// Computes `y = norm(x)`, row by row. On entry `out.normed` contains the rows `x`, which are normalised in place.
pub(crate) fn normalise_rows(cpu: &Cpu, affine: Affine<'_>, out: NormOutput<'_>) {
    let width = affine.weight.len();
    let block = width * ROWS_PER_TASK;
    let n_tasks = out.y.len().div_ceil(block);
    let NormOutput { normed, scale, y } = out;
    let parts =
        (Split::every(normed, block), Split::every(scale, ROWS_PER_TASK), Split::every(y, block));
    cpu.each(n_tasks, parts, |_, _, (normed, scale, y)| {
        let rows = normed.chunks_exact_mut(width).zip(y.chunks_exact_mut(width));
        for ((normed, y), scale) in rows.zip(scale) {
            *scale = normalise(cpu.isa(), affine, normed, y);
        }
    });
}

/// The backward pass of [`normalise_rows`]. Replaces the gradient of `y` in `d` by the gradient of `x`.
///
/// `sums` gets two groups of columns: the gradients of the weight of the norm and of its bias.
pub(crate) fn norm_input_gradients(
    cpu: &Cpu,
    weight: &[f32],
    saved: SavedNorm<'_>,
    d: &mut [f32],
    sums: &mut ColumnSums,
) {
    let width = weight.len();
    let block = width * ROWS_PER_TASK;
    let n_tasks = d.len().div_ceil(block);
    let parts = (Split::every(d, block), Split::every(sums.start(n_tasks, 2 * width), 2 * width));
    cpu.each(n_tasks, parts, |task, _, (d, sums)| {
        for (d, row) in d.chunks_exact_mut(width).zip(task * ROWS_PER_TASK..) {
            let normed = &saved.normed[row * width..(row + 1) * width];
            norm_input_gradient(cpu.isa(), weight, normed, saved.scale[row], d, sums);
        }
    });
}
