//! One LSTM layer over a whole batch. The contribution of the inputs to the gates is computed in one product, then the
//! recurrence runs step by step.

use super::batch::TimeMajorBatch;
use super::cell;
use crate::buffer::Buffer;
use crate::device::Cpu;
use crate::error::Error;
use crate::gradients::Gradients;
use crate::ops::ColumnSums;
use crate::ops::linear::{Accumulator, Linear};
use crate::params::Parameters;
use crate::product::{Left, Out, Right, Shape, product};
use std::ops::Range;

/// The sizes of a layer and the ranges of its parameters.
pub(super) struct Layer {
    pub(super) inputs: usize,
    pub(super) hidden: usize,
    input_weight: Range<usize>,
    hidden_weight: Range<usize>,
    input_bias: Range<usize>,
    hidden_bias: Range<usize>,
}

/// The arguments that all layers need for one pass over a batch.
#[derive(Clone, Copy)]
pub(super) struct Pass<'a> {
    pub(super) cpu: &'a Cpu,
    pub(super) parameters: &'a Parameters,
    pub(super) batch: &'a TimeMajorBatch,
}

/// Results of the forward pass that the backward pass needs, `[rows, ...]`.
#[derive(Default)]
pub(super) struct LayerTape {
    gates: Buffer,
    cell_state: Buffer,
    pub(super) output: Buffer,
    /// The gradient of the cell state, `[sequences, hidden]`.
    d_cell_state: Buffer,
    /// The output of the previous step for each row.
    previous_output: Buffer,
    sums: ColumnSums,
}

/// The cell state and the output of one layer, `[sequences, hidden]`.
pub(super) struct LayerState {
    pub(super) cell_state: Vec<f32>,
    pub(super) output: Vec<f32>,
}

impl Layer {
    pub(super) fn new(parameters: &Parameters, index: usize, inputs: usize, hidden: usize) -> Self {
        let range = |name: &str| {
            let name = format!("lstm.{name}_l{index}");
            parameters.span(&name, &name)
        };
        Self {
            inputs,
            hidden,
            input_weight: range("weight_ih"),
            hidden_weight: range("weight_hh"),
            input_bias: range("bias_ih"),
            hidden_bias: range("bias_hh"),
        }
    }

    fn input_linear(&self) -> Linear {
        Linear { inputs: self.inputs, outputs: 4 * self.hidden }
    }

    fn hidden_linear(&self) -> Linear {
        Linear { inputs: self.hidden, outputs: 4 * self.hidden }
    }

    fn biases<'a>(&self, parameters: &'a Parameters) -> [&'a [f32]; 2] {
        [&self.input_bias, &self.hidden_bias].map(|bias| parameters.at(bias))
    }

    /// Adds the recurrent part to the gates: `gates += h W^T`.
    fn add_recurrence(&self, cpu: &Cpu, h: &[f32], weight: &[f32], gates: &mut [f32]) {
        let (hidden, wide) = (self.hidden, 4 * self.hidden);
        let shape = Shape { m: h.len() / hidden, k: hidden, n: wide };
        let out = Out { data: gates, row: wide, accumulates: true };
        product(cpu, shape, Left::rows(h, hidden), Right::columns(weight, hidden), out);
    }

    /// Computes the outputs of all rows from the inputs `x` `[rows, inputs]`, and writes them to the tape.
    pub(super) fn forward(
        &self,
        pass: Pass<'_>,
        x: &[f32],
        tape: &mut LayerTape,
    ) -> Result<(), Error> {
        let Pass { cpu, parameters, batch } = pass;
        let (n, hidden, wide) = (batch.n_rows(), self.hidden, 4 * self.hidden);
        tape.gates.try_reserve(n * wide)?;
        tape.cell_state.try_reserve(n * hidden)?;
        tape.output.try_reserve(n * hidden)?;
        let gates = &mut tape.gates[..n * wide];
        self.input_linear().forward(cpu, x, parameters.at(&self.input_weight), gates);
        let (weight, biases) = (parameters.at(&self.hidden_weight), self.biases(parameters));
        let zeros = vec![0.0; hidden];
        for step in 0..batch.n_steps() {
            let rows = batch.rows(step);
            let first = rows.start * hidden;
            let (state_before, cell_state) = tape.cell_state.split_at_mut(first);
            let (output_before, output) = tape.output.split_at_mut(first);
            let gates = &mut gates[rows.start * wide..rows.end * wide];
            if step > 0 {
                let from = batch.rows_before(step);
                let h = &output_before[from.start * hidden..from.end * hidden];
                self.add_recurrence(cpu, h, weight, gates);
            }
            for (at, gates) in gates.chunks_exact_mut(wide).enumerate() {
                let before = match step {
                    0 => &zeros[..],
                    _ => &state_before[(batch.rows_before(step).start + at) * hidden..][..hidden],
                };
                let own = at * hidden..(at + 1) * hidden;
                let (cell_state, output) = (&mut cell_state[own.clone()], &mut output[own]);
                cell::forward(cpu.isa(), biases, before, gates, cell_state, output);
            }
        }
        Ok(())
    }

    /// Takes the gradient of the outputs in `d`, and overwrites it. Adds the gradients of the parameters to `gradients`
    /// and writes the gradient of the inputs to `dx`.
    pub(super) fn backward(
        &self,
        pass: Pass<'_>,
        x: &[f32],
        tape: &mut LayerTape,
        d: &mut [f32],
        dx: &mut [f32],
        gradients: &mut Gradients,
    ) -> Result<(), Error> {
        let Pass { cpu, parameters, batch } = pass;
        let (n, wide) = (batch.n_rows(), 4 * self.hidden);
        self.gates_backward(pass, tape, d)?;
        let d_gates = &tape.gates[..n * wide];
        let previous_output = &tape.previous_output[..n * self.hidden];
        let slot = gradients.slot(&self.hidden_weight);
        self.hidden_linear().weight_gradient(cpu, d_gates, previous_output, slot);
        self.input_linear().weight_gradient(cpu, d_gates, x, gradients.slot(&self.input_weight));
        tape.sums.sum_rows(cpu, d_gates, wide);
        tape.sums.finish_into(cpu, 0, gradients.slot(&self.input_bias));
        tape.sums.finish_into(cpu, 0, gradients.slot(&self.hidden_bias));
        let weight = parameters.at(&self.input_weight);
        self.input_linear().backward(cpu, d_gates, weight, Accumulator::overwrite(dx));
        Ok(())
    }

    /// Replaces the gates in the tape by their gradients, from the last step to the first.
    fn gates_backward(
        &self,
        pass: Pass<'_>,
        tape: &mut LayerTape,
        d: &mut [f32],
    ) -> Result<(), Error> {
        let Pass { cpu, parameters, batch } = pass;
        let (n, hidden, wide) = (batch.n_rows(), self.hidden, 4 * self.hidden);
        let LayerTape { gates, cell_state, output, d_cell_state, previous_output, .. } = tape;
        d_cell_state.try_reserve(batch.rows(0).len() * hidden)?;
        d_cell_state.fill(0.0);
        previous_output.try_reserve(n * hidden)?;
        previous_output[..batch.rows(0).len() * hidden].fill(0.0);
        let zeros = vec![0.0; hidden];
        for step in (0..batch.n_steps()).rev() {
            let rows = batch.rows(step);
            let from = if step > 0 { batch.rows_before(step) } else { 0..0 };
            for (at, row) in rows.clone().enumerate() {
                let own = row * hidden..(row + 1) * hidden;
                let earlier = (from.start + at) * hidden..(from.start + at + 1) * hidden;
                let state_before = if step > 0 { &cell_state[earlier.clone()] } else { &zeros[..] };
                if step > 0 {
                    previous_output[own.clone()].copy_from_slice(&output[earlier]);
                }
                cell::backward(
                    cpu.isa(),
                    state_before,
                    &cell_state[own.clone()],
                    &d[own],
                    &mut d_cell_state[at * hidden..(at + 1) * hidden],
                    &mut gates[row * wide..(row + 1) * wide],
                );
            }
            if step > 0 {
                let d_gates = &gates[rows.start * wide..rows.end * wide];
                let earlier = Accumulator::add_to(&mut d[from.start * hidden..from.end * hidden]);
                let weight = parameters.at(&self.hidden_weight);
                self.hidden_linear().backward(cpu, d_gates, weight, earlier);
            }
        }
        Ok(())
    }

    /// Advances `state` by one step with the inputs `x` `[sequences, inputs]`.
    pub(super) fn step(
        &self,
        cpu: &Cpu,
        parameters: &Parameters,
        x: &[f32],
        state: &mut LayerState,
        gates: &mut Buffer,
    ) -> Result<(), Error> {
        let (n, hidden, wide) = (x.len() / self.inputs, self.hidden, 4 * self.hidden);
        gates.try_reserve(n * wide)?;
        let gates = &mut gates[..n * wide];
        self.input_linear().forward(cpu, x, parameters.at(&self.input_weight), gates);
        self.add_recurrence(cpu, &state.output, parameters.at(&self.hidden_weight), gates);
        let biases = self.biases(parameters);
        let cell_state = state.cell_state.chunks_exact_mut(hidden);
        let rows = cell_state.zip(state.output.chunks_exact_mut(hidden));
        for ((cell_state, output), gates) in rows.zip(gates.chunks_exact_mut(wide)) {
            let before = cell_state.to_vec();
            cell::forward(cpu.isa(), biases, &before, gates, cell_state, output);
        }
        Ok(())
    }
}
