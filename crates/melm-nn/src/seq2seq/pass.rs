//! One pass over the rows of a batch, and the operations that the blocks of a pre-norm layer share.
//!
//! Every block (attention or feed-forward) normalises its input, computes a result, applies dropout, and adds this
//! result to its input.

use crate::buffer::Buffer;
use crate::device::Cpu;
use crate::dropout::{RowMask, Site};
use crate::encoder::{LinearParams, NormTape};
use crate::error::Error;
use crate::gradients::Gradients;
use crate::isa::per_isa;
use crate::ops::linear::Accumulator;
use crate::ops::norm::{Affine, drop_gradient, norm_input_gradients, normalise_rows};
use crate::ops::{ColumnSums, ROWS_PER_TASK, RowDropout};
use crate::packed::Packed;
use crate::params::Parameters;
use crate::split::Split;
use std::ops::Range;

/// One pass over the rows of a batch.
#[derive(Clone, Copy)]
pub(super) struct Pass<'a> {
    pub(super) cpu: &'a Cpu,
    pub(super) parameters: &'a Parameters,
    pub(super) batch: &'a Packed,
    pub(super) width: usize,
    pub(super) dropout: RowDropout<'a>,
    /// The layer number that dropout uses.
    pub(super) layer: usize,
}

/// The output of the encoder, which the decoder attends to.
#[derive(Clone, Copy)]
pub(super) struct Memory<'a> {
    /// The source sentences.
    pub(super) batch: &'a Packed,
    pub(super) rows: &'a [f32],
}

/// The epsilon of all layer norms. It is the default of torch, which mBART in Hugging Face uses.
pub(super) const NORM_EPS: f32 = 1e-5;

per_isa! {
    /// Computes `h += dropout(x + bias)`.
    fn add_dropped(mask: RowMask, x: &[f32], bias: &[f32], h: &mut [f32]) {
        for (((h, x), bias), column) in h.iter_mut().zip(x).zip(bias).zip(0_u32..) {
            *h += (x + bias) * mask.factor(column);
        }
    }
}

/// Working memory that all layers share.
#[derive(Default)]
pub(super) struct Workspace {
    /// The result of a block before it is added to its input, or the gradient of this result, `[rows, width]`.
    pub(super) rows: Buffer,
    /// The inner feed-forward rows after the GELU, `[rows, inner]`.
    pub(super) inner: Buffer,
    pub(super) d_inner: Buffer,
    /// The gradient of the output of a norm.
    pub(super) d_y: Buffer,
    pub(super) d_context: Buffer,
    pub(super) d_queries: Buffer,
    pub(super) d_keys: Buffer,
    pub(super) d_values: Buffer,
    pub(super) sums: ColumnSums,
}

impl Workspace {
    /// Grows the buffers for the backward pass of an attention block whose queries have `n_query` elements and whose
    /// keys have `n_key` elements.
    pub(super) fn reserve_attention(&mut self, n_query: usize, n_key: usize) -> Result<(), Error> {
        for buffer in [&mut self.rows, &mut self.d_context, &mut self.d_y, &mut self.d_queries] {
            buffer.try_reserve(n_query)?;
        }
        self.d_keys.try_reserve(n_key)?;
        self.d_values.try_reserve(n_key)
    }
}

impl Pass<'_> {
    pub(super) fn n_rows(&self) -> usize {
        self.dropout.places.len()
    }

    pub(super) fn at_layer(self, layer: usize) -> Self {
        Self { layer, ..self }
    }

    /// Writes `norm(x)` to the tape.
    pub(super) fn norm(
        &self,
        params: &LinearParams,
        x: &[f32],
        tape: &mut NormTape,
    ) -> Result<(), Error> {
        let (n, width) = (self.n_rows(), self.width);
        tape.try_reserve(n, width)?;
        tape.normed[..n * width].copy_from_slice(&x[..n * width]);
        let affine = Affine {
            weight: self.parameters.at(&params.weight),
            bias: self.parameters.at(&params.bias),
            eps: NORM_EPS,
        };
        normalise_rows(self.cpu, affine, tape.output(n, width));
        Ok(())
    }

    /// Replaces the gradient of `norm(x)` in `d` by the gradient of `x`, and adds the gradients of the parameters of
    /// the norm to `gradients`.
    pub(super) fn norm_backward(
        &self,
        params: &LinearParams,
        tape: &NormTape,
        d: &mut [f32],
        sums: &mut ColumnSums,
        gradients: &mut Gradients,
    ) {
        let saved = tape.saved(self.n_rows(), self.width);
        norm_input_gradients(self.cpu, self.parameters.at(&params.weight), saved, d, sums);
        sums.finish_into(self.cpu, 0, gradients.slot(&params.weight));
        sums.finish_into(self.cpu, self.width, gradients.slot(&params.bias));
    }

    /// Computes `h += dropout(x + bias)`.
    pub(super) fn add(&self, site: Site, x: &[f32], bias: &[f32], h: &mut [f32]) {
        let width = self.width;
        let block = ROWS_PER_TASK * width;
        let n_tasks = self.n_rows().div_ceil(ROWS_PER_TASK);
        self.cpu.each(n_tasks, Split::every(h, block), |task, _, h| {
            for (h, row) in h.chunks_exact_mut(width).zip(task * ROWS_PER_TASK..) {
                let x = &x[row * width..(row + 1) * width];
                let mask = self.dropout.mask(self.layer, site, row);
                add_dropped(self.cpu.isa(), mask, x, bias, h);
            }
        });
    }

    /// The backward pass of [`Self::add`]: computes `dx = dropout(d)`, and adds the gradient of the bias to
    /// `gradients`.
    pub(super) fn add_backward(
        &self,
        site: Site,
        bias: &Range<usize>,
        d: &[f32],
        dx: &mut [f32],
        sums: &mut ColumnSums,
        gradients: &mut Gradients,
    ) {
        let width = self.width;
        let block = ROWS_PER_TASK * width;
        let n_tasks = self.n_rows().div_ceil(ROWS_PER_TASK);
        let parts = (Split::every(dx, block), Split::every(sums.start(n_tasks, width), width));
        self.cpu.each(n_tasks, parts, |task, _, (dx, sum)| {
            for (dx, row) in dx.chunks_exact_mut(width).zip(task * ROWS_PER_TASK..) {
                let d = &d[row * width..(row + 1) * width];
                let mask = self.dropout.mask(self.layer, site, row);
                drop_gradient(self.cpu.isa(), mask, d, dx, sum);
            }
        });
        sums.finish_into(self.cpu, 0, gradients.slot(bias));
    }

    /// Computes `rows = x W^T + b`.
    pub(super) fn project(&self, params: &LinearParams, x: &[f32], rows: &mut [f32]) {
        let weight = self.parameters.at(&params.weight);
        let bias = self.parameters.at(&params.bias);
        params.linear().forward_with_bias(self.cpu, x, weight, bias, rows);
    }

    /// The backward pass of [`Self::project`]: adds the gradients of weight and bias to `gradients`, and writes the
    /// gradient of `x` to `dx`.
    pub(super) fn project_backward(
        &self,
        params: &LinearParams,
        d: &[f32],
        x: &[f32],
        dx: Accumulator<'_>,
        sums: &mut ColumnSums,
        gradients: &mut Gradients,
    ) {
        let linear = params.linear();
        linear.weight_gradient(self.cpu, d, x, gradients.slot(&params.weight));
        sums.sum_rows(self.cpu, d, linear.outputs);
        sums.finish_into(self.cpu, 0, gradients.slot(&params.bias));
        linear.backward(self.cpu, d, self.parameters.at(&params.weight), dx);
    }
}
