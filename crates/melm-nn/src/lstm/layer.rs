//! One layer over a whole batch: the inputs' share of the gates in one product, the recurrence step by step, and back.

use super::batch::ByTime;
use super::cell;
use crate::buffer::Buffer;
use crate::device::Cpu;
use crate::gradients::Gradients;
use crate::ops::ColumnSums;
use crate::ops::linear::{Accumulator, Linear};
use crate::params::Parameters;
use crate::product::{Left, Out, Right, Shape, product};
use std::ops::Range;

/// Where a layer's numbers are.
pub(super) struct Layer {
    pub(super) inputs: usize,
    pub(super) hidden: usize,
    input_weight: Range<usize>,
    hidden_weight: Range<usize>,
    input_bias: Range<usize>,
    hidden_bias: Range<usize>,
}

/// What the backward pass needs of the forward pass, `[rows, ...]`.
#[derive(Default)]
pub(super) struct LayerTape {
    gates: Buffer,
    memory: Buffer,
    pub(super) output: Buffer,
    /// The memory's gradient, `[sequences, hidden]`.
    d_memory: Buffer,
    /// Each row's output one step before.
    before: Buffer,
}

impl Layer {
    pub(super) fn of(parameters: &Parameters, index: usize, inputs: usize, hidden: usize) -> Self {
        let place = |name: &str| {
            let name = format!("lstm.{name}_l{index}");
            parameters.span(&name, &name)
        };
        Self {
            inputs,
            hidden,
            input_weight: place("weight_ih"),
            hidden_weight: place("weight_hh"),
            input_bias: place("bias_ih"),
            hidden_bias: place("bias_hh"),
        }
    }

    fn of_input(&self) -> Linear {
        Linear { inputs: self.inputs, outputs: 4 * self.hidden }
    }

    fn of_hidden(&self) -> Linear {
        Linear { inputs: self.hidden, outputs: 4 * self.hidden }
    }

    fn biases<'a>(&self, parameters: &'a Parameters) -> [&'a [f32]; 2] {
        [&self.input_bias, &self.hidden_bias].map(|bias| parameters.at(bias))
    }

    /// `gates += h W^T`, the recurrent share.
    fn add_recurrence(&self, cpu: &Cpu, (h, weight): (&[f32], &[f32]), gates: &mut [f32]) {
        let (hidden, wide) = (self.hidden, 4 * self.hidden);
        let shape = Shape { m: h.len() / hidden, k: hidden, n: wide };
        let out = Out { data: gates, row: wide, accumulates: true };
        product(cpu, shape, Left::rows(h, hidden), Right::columns(weight, hidden), out);
    }

    /// The outputs of every row, in the tape, from the inputs `x` `[rows, inputs]`.
    pub(super) fn forward(
        &self,
        cpu: &Cpu,
        parameters: &Parameters,
        (batch, x): (&ByTime, &[f32]),
        tape: &mut LayerTape,
    ) {
        let (n, hidden, wide) = (batch.n_rows(), self.hidden, 4 * self.hidden);
        tape.gates.reserve(n * wide);
        tape.memory.reserve(n * hidden);
        tape.output.reserve(n * hidden);
        let gates = &mut tape.gates[..n * wide];
        self.of_input().forward(cpu, n, (x, parameters.at(&self.input_weight)), gates);
        let (weight, biases) = (parameters.at(&self.hidden_weight), self.biases(parameters));
        let none = vec![0.0; hidden];
        for step in 0..batch.n_steps() {
            let rows = batch.rows(step);
            let first = rows.start * hidden;
            let (memory_before, memory) = tape.memory.split_at_mut(first);
            let (output_before, output) = tape.output.split_at_mut(first);
            let gates = &mut gates[rows.start * wide..rows.end * wide];
            if step > 0 {
                let from = batch.rows_before(step);
                let h = &output_before[from.start * hidden..from.end * hidden];
                self.add_recurrence(cpu, (h, weight), gates);
            }
            for (at, gates) in gates.chunks_exact_mut(wide).enumerate() {
                let before = match step {
                    0 => &none[..],
                    _ => &memory_before[(batch.rows_before(step).start + at) * hidden..][..hidden],
                };
                let own = at * hidden..(at + 1) * hidden;
                let (memory, output) = (&mut memory[own.clone()], &mut output[own]);
                cell::forward(cpu.isa(), biases, before, gates, memory, output);
            }
        }
    }

    /// From the gradient of the outputs in `d`, which is used up, to that of the parameters and, in `dx`, of the inputs.
    pub(super) fn backward(
        &self,
        cpu: &Cpu,
        (parameters, batch, x): (&Parameters, &ByTime, &[f32]),
        (tape, sums): (&mut LayerTape, &mut ColumnSums),
        (d, dx, gradients): (&mut [f32], &mut [f32], &mut Gradients),
    ) {
        let (n, wide) = (batch.n_rows(), 4 * self.hidden);
        self.through_time(cpu, (parameters.at(&self.hidden_weight), batch), tape, d);
        let d_gates = &tape.gates[..n * wide];
        let before = &tape.before[..n * self.hidden];
        self.of_hidden().weight_gradient(
            cpu,
            n,
            (d_gates, before),
            gradients.slot(&self.hidden_weight),
        );
        self.of_input().weight_gradient(cpu, n, (d_gates, x), gradients.slot(&self.input_weight));
        let shape = sums.of_rows(cpu, d_gates, wide);
        sums.finish_into(cpu, shape, 0, gradients.slot(&self.input_bias));
        sums.finish_into(cpu, shape, 0, gradients.slot(&self.hidden_bias));
        let weight = parameters.at(&self.input_weight);
        let dx = Accumulator { data: dx, accumulates: false };
        self.of_input().backward(cpu, n, (d_gates, weight), dx);
    }

    /// The gates' gradient, in their place, last step first.
    fn through_time(
        &self,
        cpu: &Cpu,
        (weight, batch): (&[f32], &ByTime),
        tape: &mut LayerTape,
        d: &mut [f32],
    ) {
        let (n, hidden, wide) = (batch.n_rows(), self.hidden, 4 * self.hidden);
        let LayerTape { gates, memory, output, d_memory, before } = tape;
        d_memory.reserve(batch.rows(0).len() * hidden);
        d_memory.fill(0.0);
        before.reserve(n * hidden);
        before[..batch.rows(0).len() * hidden].fill(0.0);
        let none = vec![0.0; hidden];
        for step in (0..batch.n_steps()).rev() {
            let rows = batch.rows(step);
            let from = if step > 0 { batch.rows_before(step) } else { 0..0 };
            for (at, row) in rows.clone().enumerate() {
                let own = row * hidden..(row + 1) * hidden;
                let earlier = (from.start + at) * hidden..(from.start + at + 1) * hidden;
                let memory_before = if step > 0 { &memory[earlier.clone()] } else { &none[..] };
                if step > 0 {
                    before[own.clone()].copy_from_slice(&output[earlier]);
                }
                cell::backward(
                    cpu.isa(),
                    memory_before,
                    &memory[own.clone()],
                    &d[own],
                    &mut d_memory[at * hidden..(at + 1) * hidden],
                    &mut gates[row * wide..(row + 1) * wide],
                );
            }
            if step > 0 {
                let d_gates = &gates[rows.start * wide..rows.end * wide];
                let data = &mut d[from.start * hidden..from.end * hidden];
                let earlier = Accumulator { data, accumulates: true };
                self.of_hidden().backward(cpu, rows.len(), (d_gates, weight), earlier);
            }
        }
    }

    /// One step from `x` `[sequences, inputs]`: memory and output, `[sequences, hidden]`, are those of the step before
    /// and become those of this one.
    pub(super) fn step(
        &self,
        cpu: &Cpu,
        (parameters, x): (&Parameters, &[f32]),
        (memory, output): (&mut [f32], &mut [f32]),
        gates: &mut Buffer,
    ) {
        let (n, hidden, wide) = (x.len() / self.inputs, self.hidden, 4 * self.hidden);
        gates.reserve(n * wide);
        let gates = &mut gates[..n * wide];
        self.of_input().forward(cpu, n, (x, parameters.at(&self.input_weight)), gates);
        self.add_recurrence(cpu, (output, parameters.at(&self.hidden_weight)), gates);
        let biases = self.biases(parameters);
        let rows = memory.chunks_exact_mut(hidden).zip(output.chunks_exact_mut(hidden));
        for ((memory, output), gates) in rows.zip(gates.chunks_exact_mut(wide)) {
            let before = memory.to_vec();
            cell::forward(cpu.isa(), biases, &before, gates, memory, output);
        }
    }
}
