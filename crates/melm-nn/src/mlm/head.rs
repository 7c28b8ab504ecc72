//! The masked-LM head without the product with the piece table: dense layer, GELU and layer norm. It is computed only
//! at the masked rows.

use super::scores::Output;
use super::{HeadTape, MaskedBatch, MaskedLmTape};
use crate::config::Config;
use crate::device::Cpu;
use crate::encoder::LinearParams;
use crate::error::Error;
use crate::gradients::Gradients;
use crate::ops::linear::Accumulator;
use crate::ops::norm::{Affine, NormOutput, denormalise_rows, normalise_rows};
use crate::ops::{add, gelu};
use crate::params::{Parameters, TABLE};
use crate::table::TableGradient;
use std::ops::Range;

/// The ranges of the parameters of the masked-LM head.
pub(crate) struct LmHead {
    pub(crate) dense: LinearParams,
    pub(crate) norm: LinearParams,
    pub(crate) bias: Range<usize>,
    pub(crate) table: Range<usize>,
    width: usize,
    eps: f32,
}

impl LmHead {
    /// Finds the parameters of the head by their roles.
    pub(super) fn new(config: &Config, parameters: &Parameters) -> Self {
        Self {
            dense: LinearParams::new(parameters, "lm_head.dense"),
            norm: LinearParams::new(parameters, "lm_head.layer_norm"),
            bias: parameters.span("lm_head.bias", "lm_head.bias"),
            table: parameters.span(TABLE, TABLE),
            width: config.hidden_size,
            eps: config.layer_norm_eps,
        }
    }

    pub(super) fn output<'a>(&self, parameters: &'a Parameters) -> Output<'a> {
        Output {
            table: parameters.at(&self.table),
            bias: parameters.at(&self.bias),
            width: self.width,
        }
    }

    /// Computes the rows that are multiplied by the piece table, from the hidden states at the masked `positions`.
    /// Writes these rows to `states`.
    pub(super) fn forward(
        &self,
        cpu: &Cpu,
        parameters: &Parameters,
        hidden: &[f32],
        positions: &[usize],
        tape: &mut HeadTape,
        states: &mut [f32],
    ) -> Result<(), Error> {
        let (n, width) = (positions.len(), self.width);
        for buffer in [&mut tape.gathered, &mut tape.dense, &mut tape.activated] {
            buffer.try_reserve(n * width)?;
        }
        tape.norm.try_reserve(n, width)?;
        for (out, row) in tape.gathered.chunks_exact_mut(width).zip(positions) {
            out.copy_from_slice(&hidden[row * width..(row + 1) * width]);
        }
        let dense = &mut tape.dense[..n * width];
        let x = &tape.gathered[..n * width];
        self.dense.linear().forward(cpu, x, parameters.at(&self.dense.weight), dense);
        let NormOutput { normed, scale, .. } = tape.norm.output(n, width);
        gelu::forward(cpu, parameters.at(&self.dense.bias), dense, normed);
        let affine = Affine {
            weight: parameters.at(&self.norm.weight),
            bias: parameters.at(&self.norm.bias),
            eps: self.eps,
        };
        normalise_rows(cpu, affine, NormOutput { normed, scale, y: states });
        Ok(())
    }

    /// Scores every piece at every masked row and runs the backward pass of the head. Writes the gradient of the hidden
    /// states to the tape of the encoder. Returns the sum of the negative log-likelihoods.
    pub(super) fn train(
        &self,
        cpu: &Cpu,
        parameters: &Parameters,
        batch: &MaskedBatch,
        weight: f32,
        tape: &mut MaskedLmTape,
        gradients: &mut Gradients,
    ) -> Result<f64, Error> {
        let (positions, width) = (&batch.positions[..], self.width);
        let MaskedLmTape { encoder, head } = tape;
        // The gradient of the table is moved out, because the gradient of the bias is borrowed at the same time. It is
        // put back even if a step fails.
        let mut table = std::mem::take(&mut gradients.table);
        let train = |table: &mut TableGradient, gradients: &mut Gradients, head: &mut HeadTape| {
            let trained = parameters.table().trained_rows();
            let part = table.start_head(positions.len(), &trained)?;
            let states = &mut part.states[..positions.len() * width];
            self.forward(cpu, parameters, encoder.hidden(), positions, head, states)?;
            let bias = gradients.slot(&self.bias);
            let output = self.output(parameters);
            let loss = head.train(cpu, output, part, &batch.originals, weight, bias)?;
            table.finish_head()?;
            Ok(loss)
        };
        let loss = train(&mut table, gradients, head);
        gradients.table = table;
        let loss = loss?;
        self.backward(cpu, parameters, positions.len(), head, gradients)?;
        let d = encoder.d_hidden();
        d.fill(0.0);
        for (row, from) in positions.iter().zip(head.d_gathered.chunks_exact(width)) {
            add(cpu.isa(), &mut d[row * width..(row + 1) * width], from);
        }
        Ok(loss)
    }

    /// Computes the gradient of the gathered rows from the gradient of the `n` rows after the norm in `head.d`.
    fn backward(
        &self,
        cpu: &Cpu,
        parameters: &Parameters,
        n: usize,
        head: &mut HeadTape,
        gradients: &mut Gradients,
    ) -> Result<(), Error> {
        let width = self.width;
        let d = &mut head.d[..n * width];
        let weight = parameters.at(&self.norm.weight);
        denormalise_rows(cpu, weight, head.norm.saved(n, width), d, &mut head.sums);
        head.sums.finish_into(cpu, 0, gradients.slot(&self.norm.weight));
        head.sums.finish_into(cpu, width, gradients.slot(&self.norm.bias));
        let (dense, activated) = (&head.dense[..n * width], &mut head.activated[..n * width]);
        gelu::backward(cpu, width, dense, d, activated, &mut head.sums);
        head.sums.finish_into(cpu, 0, gradients.slot(&self.dense.bias));
        let x = &head.gathered[..n * width];
        let linear = self.dense.linear();
        if parameters.trains(&self.dense.weight) {
            linear.weight_gradient(cpu, d, x, gradients.slot(&self.dense.weight));
        }
        head.d_gathered.try_reserve(n * width)?;
        let out = Accumulator::overwrite(&mut head.d_gathered[..n * width]);
        linear.backward(cpu, d, parameters.at(&self.dense.weight), out);
        Ok(())
    }
}
