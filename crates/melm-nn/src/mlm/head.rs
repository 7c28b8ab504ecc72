//! The head before the table: dense, gelu, layer norm, at the masked rows only.

use super::{HeadTape, scores::Output};
use crate::config::Config;
use crate::device::Cpu;
use crate::encoder::{EncoderTape, LinearParams};
use crate::gradients::Gradients;
use crate::ops::linear::{Accumulator, Linear};
use crate::ops::norm::{Affine, denormalise, normalise};
use crate::ops::{ROWS_PER_TASK, add, gelu};
use crate::params::{Parameters, TABLE};
use crate::split::Split;
use std::ops::Range;

/// Where the head's numbers are.
pub(crate) struct Head {
    pub(crate) dense: LinearParams,
    pub(crate) norm: LinearParams,
    pub(crate) bias: Range<usize>,
    pub(crate) table: Range<usize>,
    width: usize,
    eps: f32,
}

impl Head {
    pub(super) fn new(config: &Config, parameters: &Parameters) -> Self {
        Self {
            dense: LinearParams::of(parameters, "lm_head.dense"),
            norm: LinearParams::of(parameters, "lm_head.layer_norm"),
            bias: parameters.span("lm_head.bias", "lm_head.bias"),
            table: parameters.span(TABLE, TABLE),
            width: config.hidden_size,
            eps: config.layer_norm_eps,
        }
    }

    fn linear(&self) -> Linear {
        Linear { inputs: self.width, outputs: self.width }
    }

    pub(super) fn output<'a>(&self, parameters: &'a Parameters) -> Output<'a> {
        Output {
            table: parameters.at(&self.table),
            bias: parameters.at(&self.bias),
            width: self.width,
        }
    }

    /// The rows that meet the table, in `states`, from the encoder's rows at the masked `positions`.
    pub(super) fn forward(
        &self,
        cpu: &Cpu,
        parameters: &Parameters,
        (hidden, positions): (&[f32], &[usize]),
        (tape, states): (&mut HeadTape, &mut [f32]),
    ) {
        let (n, width) = (positions.len(), self.width);
        for buffer in [&mut tape.gathered, &mut tape.dense, &mut tape.activated] {
            buffer.reserve(n * width);
        }
        tape.norm.reserve(n, width);
        for (out, row) in tape.gathered.chunks_exact_mut(width).zip(positions) {
            out.copy_from_slice(&hidden[row * width..(row + 1) * width]);
        }
        let dense = &mut tape.dense[..n * width];
        let x = &tape.gathered[..n * width];
        self.linear().forward(cpu, n, (x, parameters.at(&self.dense.weight)), dense);
        let (normed, _) = tape.norm.out(n, width);
        gelu::forward(cpu, parameters.at(&self.dense.bias), dense, normed.rows);
        let affine = Affine {
            weight: parameters.at(&self.norm.weight),
            bias: parameters.at(&self.norm.bias),
            eps: self.eps,
        };
        let block = ROWS_PER_TASK * width;
        let parts = (
            Split::every(normed.rows, block),
            Split::every(normed.scale, ROWS_PER_TASK),
            Split::every(&mut states[..n * width], block),
        );
        cpu.each(n.div_ceil(ROWS_PER_TASK), parts, |_, _, (normed, scale, y)| {
            for ((normed, y), scale) in
                normed.chunks_exact_mut(width).zip(y.chunks_exact_mut(width)).zip(scale)
            {
                *scale = normalise(cpu.isa(), affine, normed, y);
            }
        });
    }

    /// Scores every piece at every masked row, and goes back to the encoder's rows: their gradient is in the tape's
    /// [`EncoderTape::d_hidden`]. Returns the sum of the negative log-likelihoods.
    pub(super) fn train(
        &self,
        cpu: &Cpu,
        parameters: &Parameters,
        (positions, originals, weight): (&[usize], &[u32], f32),
        (tape, head, gradients): (&mut EncoderTape, &mut HeadTape, &mut Gradients),
    ) -> f64 {
        let (n, width) = (positions.len(), self.width);
        let output = self.output(parameters);
        // Taken out, since the bias gradient is borrowed beside it.
        let mut table = std::mem::take(&mut gradients.table);
        let part = table.add_head(n);
        self.forward(cpu, parameters, (tape.hidden(), positions), (head, &mut part.states));
        head.score(cpu, output, part);
        let mut loss = 0.0;
        for (column, original) in originals.iter().enumerate() {
            let state = &part.states[column * width..(column + 1) * width];
            loss += f64::from(head.log_totals[column] - output.score(cpu.isa(), state, *original));
        }
        head.errors(cpu, output, (part, originals, weight), gradients.slot(&self.bias));
        if !parameters.trains(&self.table) {
            table.remove_head();
        }
        gradients.table = table;
        self.backward(cpu, parameters, (n, head), gradients);
        let d = tape.d_hidden();
        d.fill(0.0);
        for (row, from) in positions.iter().zip(head.d_gathered.chunks_exact(width)) {
            add(cpu.isa(), &mut d[row * width..(row + 1) * width], from);
        }
        loss
    }

    /// From the gradient of the normed rows in `head.d` to that of the gathered rows.
    fn backward(
        &self,
        cpu: &Cpu,
        parameters: &Parameters,
        (n, head): (usize, &mut HeadTape),
        gradients: &mut Gradients,
    ) {
        let width = self.width;
        let weight = parameters.at(&self.norm.weight);
        let d = &mut head.d[..n * width];
        let n_tasks = n.div_ceil(ROWS_PER_TASK);
        let block = ROWS_PER_TASK * width;
        let parts =
            (Split::every(d, block), Split::every(head.sums.start(n_tasks, 2 * width), 2 * width));
        let (normed, scale) = (&head.norm.normed, &head.norm.scale);
        cpu.each(n_tasks, parts, |task, _, (d, sums)| {
            for (d, row) in d.chunks_exact_mut(width).zip(task * ROWS_PER_TASK..) {
                denormalise(
                    cpu.isa(),
                    weight,
                    &normed[row * width..(row + 1) * width],
                    scale[row],
                    d,
                    sums,
                );
            }
        });
        let shape = (n_tasks, 2 * width);
        head.sums.finish_into(cpu, shape, 0, gradients.slot(&self.norm.weight));
        head.sums.finish_into(cpu, shape, width, gradients.slot(&self.norm.bias));
        let d = &mut head.d[..n * width];
        let dense = &head.dense[..n * width];
        let shape = gelu::backward(
            cpu,
            dense,
            d,
            &mut head.activated[..n * width],
            (&mut head.sums, width),
        );
        head.sums.finish_into(cpu, shape, 0, gradients.slot(&self.dense.bias));
        let x = &head.gathered[..n * width];
        if parameters.trains(&self.dense.weight) {
            self.linear().weight_gradient(cpu, n, (d, x), gradients.slot(&self.dense.weight));
        }
        head.d_gathered.reserve(n * width);
        let out = Accumulator { data: &mut head.d_gathered[..n * width], accumulates: false };
        self.linear().backward(cpu, n, (d, parameters.at(&self.dense.weight)), out);
    }
}
