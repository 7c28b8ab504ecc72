//! A linear map `y = x W^T`. `W` is stored as in Hugging Face, with one row for each output.

use super::add;
use crate::device::Cpu;
use crate::product::{Left, Out, Right, Shape, product};

/// The numbers of inputs and outputs of a linear map. The number of rows follows from the lengths of the matrices.
#[derive(Clone, Copy)]
pub(crate) struct Linear {
    pub(crate) inputs: usize,
    pub(crate) outputs: usize,
}

impl Linear {
    /// Computes `y = x W^T` without a bias. [`Self::forward_with_bias`] also adds the bias.
    pub(crate) fn forward(self, cpu: &Cpu, x: &[f32], weight: &[f32], y: &mut [f32]) {
        let shape = Shape { m: x.len() / self.inputs, k: self.inputs, n: self.outputs };
        let out = Out { data: y, row: self.outputs, accumulates: false };
        product(cpu, shape, Left::rows(x, self.inputs), Right::columns(weight, self.inputs), out);
    }

    /// Computes `y = x W^T + b`.
    pub(crate) fn forward_with_bias(
        self,
        cpu: &Cpu,
        x: &[f32],
        weight: &[f32],
        bias: &[f32],
        y: &mut [f32],
    ) {
        self.forward(cpu, x, weight, y);
        for row in y.chunks_exact_mut(self.outputs) {
            add(cpu.isa(), row, bias);
        }
    }

    /// Computes the gradient of the input: `dx = dy W`, or `dx += dy W`.
    pub(crate) fn backward(self, cpu: &Cpu, dy: &[f32], weight: &[f32], dx: Accumulator<'_>) {
        let shape = Shape { m: dy.len() / self.outputs, k: self.outputs, n: self.inputs };
        let Accumulator { data, accumulates } = dx;
        let out = Out { data, row: self.inputs, accumulates };
        product(cpu, shape, Left::rows(dy, self.outputs), Right::rows(weight, self.inputs), out);
    }

    /// Computes the gradient of the weight: `dW = dy^T x`, or `dW += dy^T x`.
    pub(crate) fn weight_gradient(self, cpu: &Cpu, dy: &[f32], x: &[f32], dw: Accumulator<'_>) {
        let shape = Shape { m: self.outputs, k: x.len() / self.inputs, n: self.inputs };
        let Accumulator { data, accumulates } = dw;
        let out = Out { data, row: self.inputs, accumulates };
        product(cpu, shape, Left::columns(dy, self.outputs), Right::rows(x, self.inputs), out);
    }
}

/// A slice that a result is written to or added to.
pub(crate) struct Accumulator<'a> {
    pub(crate) data: &'a mut [f32],
    pub(crate) accumulates: bool,
}

impl<'a> Accumulator<'a> {
    /// The result overwrites `data`.
    pub(crate) fn overwrite(data: &'a mut [f32]) -> Self {
        Self { data, accumulates: false }
    }

    /// The result is added to `data`.
    pub(crate) fn add_to(data: &'a mut [f32]) -> Self {
        Self { data, accumulates: true }
    }
}
