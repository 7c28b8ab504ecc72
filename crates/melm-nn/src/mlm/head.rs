//! The masked-LM head: a transform of the hidden states at the masked rows, and the scores of every piece there.

use super::scores::Output;
use super::{HeadTape, MaskedBatch, MaskedLmTape};
use crate::config::Config;
use crate::device::Cpu;
use crate::error::Error;
use crate::gradients::Gradients;
use crate::params::{Parameters, TABLE};
use crate::table::TableGradient;
use crate::transform::HeadTransform;
use std::ops::Range;

/// The ranges of the parameters of the masked-LM head.
pub(crate) struct LmHead {
    pub(crate) transform: HeadTransform,
    pub(crate) bias: Range<usize>,
    pub(crate) table: Range<usize>,
    width: usize,
}

impl LmHead {
    /// Finds the parameters of the head by their roles.
    pub(super) fn new(config: &Config, parameters: &Parameters) -> Self {
        Self {
            transform: HeadTransform::new(config, parameters),
            bias: parameters.span("lm_head.bias", "lm_head.bias"),
            table: parameters.span(TABLE, TABLE),
            width: config.hidden_size,
        }
    }

    pub(super) fn output<'a>(&self, parameters: &'a Parameters) -> Output<'a> {
        Output {
            table: parameters.at(&self.table),
            bias: parameters.at(&self.bias),
            width: self.width,
        }
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
            let (hidden, tape) = (encoder.hidden(), &mut head.transform);
            self.transform.forward(cpu, parameters, hidden, tape, states)?;
            let bias = gradients.slot(&self.bias);
            let output = self.output(parameters);
            let loss = head.train(cpu, output, part, &batch.originals, weight, bias)?;
            table.finish_head()?;
            Ok(loss)
        };
        let loss = train(&mut table, gradients, head);
        gradients.table = table;
        let loss = loss?;
        let HeadTape { transform, d, .. } = head;
        let d = &mut d[..positions.len() * width];
        self.transform.backward(cpu, parameters, encoder.hidden(), d, transform, gradients)?;
        encoder.d_hidden().copy_from_slice(transform.d_hidden(positions.len(), width));
        Ok(loss)
    }
}
