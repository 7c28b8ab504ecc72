//! One step of the recurrence, row by row: torch's gates in torch's order.
#![expect(clippy::many_single_char_names, reason = "the letters of torch's documentation")]

use crate::isa::per_isa;
use crate::math::{sigmoid, tanh};

per_isa! {
    /// Gates `[4 hidden]` (input, forget, cell, output) before their biases become what they let through; the memory
    /// and the output follow.
    pub(super) fn forward(biases: [&[f32]; 2], before: &[f32], gates: &mut [f32], memory: &mut [f32], output: &mut [f32]) {
        let n = memory.len();
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
            memory[at] = f[at] * before[at] + i[at] * g[at];
            output[at] = o[at] * tanh(memory[at]);
        }
    }
}

per_isa! {
    /// From the gradient of the output, and of the memory as the next step left it, to that of the gates, in their
    /// place, and of the memory before.
    pub(super) fn backward(before: &[f32], memory: &[f32], d_output: &[f32], d_memory: &mut [f32], gates: &mut [f32]) {
        let n = memory.len();
        let (front, back) = gates.split_at_mut(2 * n);
        let ((i, f), (g, o)) = (front.split_at_mut(n), back.split_at_mut(n));
        for at in 0..n {
            let bent = tanh(memory[at]);
            let d = d_memory[at] + d_output[at] * o[at] * (1.0 - bent * bent);
            d_memory[at] = d * f[at];
            o[at] = d_output[at] * bent * o[at] * (1.0 - o[at]);
            f[at] = d * before[at] * f[at] * (1.0 - f[at]);
            let (input, cell) = (i[at], g[at]);
            i[at] = d * cell * input * (1.0 - input);
            g[at] = d * input * (1.0 - cell * cell);
        }
    }
}
