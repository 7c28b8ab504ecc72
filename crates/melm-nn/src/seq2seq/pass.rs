//! One pass over the rows of a batch, and what every part of a pre-norm layer does: norm, do something, drop, add to what
//! was there; each forward with its backward.

use crate::buffer::Buffer;
use crate::device::Cpu;
use crate::dropout::{Dropout, RowMask, Site};
use crate::encoder::{LinearParams, NormTape};
use crate::gradients::Gradients;
use crate::isa::per_isa;
use crate::ops::linear::{Accumulator, Linear};
use crate::ops::norm::{Affine, denormalise, drop_gradient, normalise};
use crate::ops::{ColumnSums, ROWS_PER_TASK, add};
use crate::packed::Packed;
use crate::params::Parameters;
use crate::split::Split;

/// One pass over the rows of a batch.
#[derive(Clone, Copy)]
pub(super) struct Pass<'a> {
    pub(super) cpu: &'a Cpu,
    pub(super) parameters: &'a Parameters,
    pub(super) batch: &'a Packed,
    /// Each row's sentence and position.
    pub(super) places: &'a [(u64, usize)],
    pub(super) width: usize,
    pub(super) dropout: Dropout,
    /// Where dropout is drawn.
    pub(super) layer: usize,
}

impl Pass<'_> {
    pub(super) fn n_rows(&self) -> usize {
        self.places.len()
    }

    pub(super) fn width(&self) -> usize {
        self.width
    }

    pub(super) fn at_layer(self, layer: usize) -> Self {
        Self { layer, ..self }
    }
}

/// What the encoder made of the sources.
#[derive(Clone, Copy)]
pub(super) struct Memory<'a> {
    pub(super) batch: &'a Packed,
    pub(super) rows: &'a [f32],
}

/// Hugging Face builds mBART's norms with torch's default.
pub(super) const NORM_EPS: f32 = 1e-5;

per_isa! {
    /// `h += dropout(x + bias)`.
    fn add_dropped(mask: RowMask, x: &[f32], bias: &[f32], h: &mut [f32]) {
        for (((h, x), bias), column) in h.iter_mut().zip(x).zip(bias).zip(0_u32..) {
            *h += (x + bias) * mask.factor(column);
        }
    }
}

/// Working memory that every layer uses anew.
#[derive(Default)]
pub(super) struct Work {
    /// `[rows, width]`: what a part has made, before it is added; or the gradient of it.
    pub(super) made: Buffer,
    /// `[rows, inner]`: after the gelu, and its gradient.
    pub(super) inner: Buffer,
    pub(super) d_inner: Buffer,
    /// Gradients of a norm's output, of contexts, queries, keys and values.
    pub(super) d_y: Buffer,
    pub(super) d_context: Buffer,
    pub(super) d_q: Buffer,
    pub(super) d_k: Buffer,
    pub(super) d_v: Buffer,
    pub(super) sums: ColumnSums,
}

impl Pass<'_> {
    /// `y = norm(x)`, in the tape.
    pub(super) fn norm(&self, place: &LinearParams, x: &[f32], tape: &mut NormTape) {
        let (n, width) = (self.n_rows(), self.width());
        tape.reserve(n, width);
        tape.normed[..n * width].copy_from_slice(&x[..n * width]);
        let affine = Affine {
            weight: self.parameters.at(&place.weight),
            bias: self.parameters.at(&place.bias),
            eps: NORM_EPS,
        };
        let (normed, y) = tape.out(n, width);
        let block = ROWS_PER_TASK * width;
        let parts = (
            Split::every(normed.rows, block),
            Split::every(normed.scale, ROWS_PER_TASK),
            Split::every(y, block),
        );
        self.cpu.each(n.div_ceil(ROWS_PER_TASK), parts, |_, _, (rows, scale, y)| {
            let rows = rows.chunks_exact_mut(width).zip(y.chunks_exact_mut(width));
            for ((row, y), scale) in rows.zip(scale) {
                *scale = normalise(self.cpu.isa(), affine, row, y);
            }
        });
    }

    /// The gradient of `x` in place of that of `y`.
    pub(super) fn norm_backward(
        &self,
        place: &LinearParams,
        (tape, d): (&NormTape, &mut [f32]),
        (sums, gradients): (&mut ColumnSums, &mut Gradients),
    ) {
        let width = self.width();
        let weight = self.parameters.at(&place.weight);
        let n_tasks = self.n_rows().div_ceil(ROWS_PER_TASK);
        let block = ROWS_PER_TASK * width;
        let parts =
            (Split::every(d, block), Split::every(sums.start(n_tasks, 2 * width), 2 * width));
        self.cpu.each(n_tasks, parts, |task, _, (d, sums)| {
            for (d, row) in d.chunks_exact_mut(width).zip(task * ROWS_PER_TASK..) {
                let normed = &tape.normed[row * width..(row + 1) * width];
                denormalise(self.cpu.isa(), weight, normed, tape.scale[row], d, sums);
            }
        });
        let shape = (n_tasks, 2 * width);
        sums.finish_into(self.cpu, shape, 0, gradients.slot(&place.weight));
        sums.finish_into(self.cpu, shape, width, gradients.slot(&place.bias));
    }

    fn mask(&self, site: Site, row: usize) -> RowMask {
        let (key, position) = self.places[row];
        self.dropout.row(self.layer, site, key, position)
    }

    /// `h += dropout(x + bias)`.
    pub(super) fn add(&self, site: Site, (x, bias): (&[f32], &[f32]), h: &mut [f32]) {
        let width = self.width();
        let block = ROWS_PER_TASK * width;
        let n_tasks = self.n_rows().div_ceil(ROWS_PER_TASK);
        self.cpu.each(n_tasks, Split::every(h, block), |task, _, h| {
            for (h, row) in h.chunks_exact_mut(width).zip(task * ROWS_PER_TASK..) {
                let x = &x[row * width..(row + 1) * width];
                add_dropped(self.cpu.isa(), self.mask(site, row), x, bias, h);
            }
        });
    }

    /// `dx = dropout(d)`, and the gradient of the bias.
    pub(super) fn add_backward(
        &self,
        (site, bias): (Site, &std::ops::Range<usize>),
        (d, dx): (&[f32], &mut [f32]),
        (sums, gradients): (&mut ColumnSums, &mut Gradients),
    ) {
        let width = self.width();
        let block = ROWS_PER_TASK * width;
        let n_tasks = self.n_rows().div_ceil(ROWS_PER_TASK);
        let parts = (Split::every(dx, block), Split::every(sums.start(n_tasks, width), width));
        self.cpu.each(n_tasks, parts, |task, _, (dx, sum)| {
            for (dx, row) in dx.chunks_exact_mut(width).zip(task * ROWS_PER_TASK..) {
                let d = &d[row * width..(row + 1) * width];
                drop_gradient(self.cpu.isa(), self.mask(site, row), d, dx, sum);
            }
        });
        sums.finish_into(self.cpu, (n_tasks, width), 0, gradients.slot(bias));
    }

    /// `rows = x W^T + b`, over as many rows as `x` has.
    pub(super) fn project(
        &self,
        (place, linear): (&LinearParams, Linear),
        x: &[f32],
        rows: &mut [f32],
    ) {
        let n = x.len() / linear.inputs;
        linear.forward(self.cpu, n, (x, self.parameters.at(&place.weight)), rows);
        let bias = self.parameters.at(&place.bias);
        for row in rows.chunks_exact_mut(linear.outputs) {
            add(self.cpu.isa(), row, bias);
        }
    }

    /// Back through [`Self::project`]: gradients of weight and bias, and that of `x` if somebody wants it.
    pub(super) fn project_backward(
        &self,
        (place, linear): (&LinearParams, Linear),
        (d, x, dx): (&[f32], &[f32], Option<Accumulator<'_>>),
        (sums, gradients): (&mut ColumnSums, &mut Gradients),
    ) {
        let n = x.len() / linear.inputs;
        linear.weight_gradient(self.cpu, n, (d, x), gradients.slot(&place.weight));
        let shape = sums.of_rows(self.cpu, d, linear.outputs);
        sums.finish_into(self.cpu, shape, 0, gradients.slot(&place.bias));
        if let Some(dx) = dx {
            linear.backward(self.cpu, n, (d, self.parameters.at(&place.weight)), dx);
        }
    }
}
