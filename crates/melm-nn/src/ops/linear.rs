//! `y = x W^T`, with `W` as Hugging Face stores it: one row an output.

use crate::device::Cpu;
use crate::product::{Left, Out, Right, Shape, product};

/// Inputs and outputs of a linear map.
#[derive(Clone, Copy)]
pub(crate) struct Linear {
    pub(crate) inputs: usize,
    pub(crate) outputs: usize,
}

impl Linear {
    /// `y = x W^T` over `n_rows` rows. The bias is added by whatever reads `y` next.
    pub(crate) fn forward(
        self,
        cpu: &Cpu,
        n_rows: usize,
        (x, weight): (&[f32], &[f32]),
        y: &mut [f32],
    ) {
        let shape = Shape { m: n_rows, k: self.inputs, n: self.outputs };
        let out = Out { data: y, row: self.outputs, accumulates: false };
        product(cpu, shape, Left::rows(x, self.inputs), Right::columns(weight, self.inputs), out);
    }

    /// `dx (+)= dy W`.
    pub(crate) fn backward(
        self,
        cpu: &Cpu,
        n_rows: usize,
        (dy, weight): (&[f32], &[f32]),
        dx: Accumulator<'_>,
    ) {
        let shape = Shape { m: n_rows, k: self.outputs, n: self.inputs };
        let Accumulator { data, accumulates } = dx;
        let out = Out { data, row: self.inputs, accumulates };
        product(cpu, shape, Left::rows(dy, self.outputs), Right::rows(weight, self.inputs), out);
    }

    /// `dW (+)= dy^T x`.
    pub(crate) fn weight_gradient(
        self,
        cpu: &Cpu,
        n_rows: usize,
        (dy, x): (&[f32], &[f32]),
        dw: Accumulator<'_>,
    ) {
        let shape = Shape { m: self.outputs, k: n_rows, n: self.inputs };
        let Accumulator { data, accumulates } = dw;
        let out = Out { data, row: self.inputs, accumulates };
        product(cpu, shape, Left::columns(dy, self.outputs), Right::rows(x, self.inputs), out);
    }
}

/// A place to write to or to add to.
pub(crate) struct Accumulator<'a> {
    pub(crate) data: &'a mut [f32],
    pub(crate) accumulates: bool,
}
