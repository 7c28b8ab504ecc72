//! One step of the recurrence for one row. The order of the gates is that of torch.
#![expect(clippy::many_single_char_names, reason = "the letters of torch's documentation")]

use crate::isa::per_isa;
use crate::math::{sigmoid, tanh};

per_isa! {
    /// Adds the biases to the gates `[4 hidden]` (input, forget, cell, output) and applies the activation functions.
    /// Then computes the new cell state and the output. `before` is the previous cell state.
    pub(super) fn forward(biases: [&[f32]; 2], before: &[f32], gates: &mut [f32], cell_state: &mut [f32], output: &mut [f32]) {
        let n = cell_state.len();
        for ((gate, a), b) in gates.iter_mut().zip(biases[0]).zip(biases[1]) {
            *gate += a + b;
        }
        let (front, back) = gates.split_at_mut(2 * n);
        let ((i, f), (g, o)) = (front.split_at_mut(n), back.split_at_mut(n));
        for at in 0..n {
            i[at] = sigmoid(i[at]);
            f[at] = sigmoid(f[at]);
            g[at] = tanh(g[at]);
            o[at] = sigmoid(o[at]);
            cell_state[at] = f[at] * before[at] + i[at] * g[at];
            output[at] = o[at] * tanh(cell_state[at]);
        }
    }
}

per_isa! {
    /// Replaces the gates by their gradient, and the gradient of the cell state in `d_cell_state` by the gradient of
    /// the previous cell state.
    ///
    /// On entry, `d_cell_state` contains the part of the gradient that comes from the next step.
    pub(super) fn backward(before: &[f32], cell_state: &[f32], d_output: &[f32], d_cell_state: &mut [f32], gates: &mut [f32]) {
        let n = cell_state.len();
        let (front, back) = gates.split_at_mut(2 * n);
        let ((i, f), (g, o)) = (front.split_at_mut(n), back.split_at_mut(n));
        for at in 0..n {
            let squashed = tanh(cell_state[at]);
            let d = d_cell_state[at] + d_output[at] * o[at] * (1.0 - squashed * squashed);
            d_cell_state[at] = d * f[at];
            o[at] = d_output[at] * squashed * o[at] * (1.0 - o[at]);
            f[at] = d * before[at] * f[at] * (1.0 - f[at]);
            let (input, cell) = (i[at], g[at]);
            i[at] = d * cell * input * (1.0 - input);
            g[at] = d * input * (1.0 - cell * cell);
        }
    }
}
