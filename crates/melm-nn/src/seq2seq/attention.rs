//! The attention block of a layer: self-attention, or cross-attention to the output of the encoder.

use super::pass::{Memory, Pass, Workspace};
use crate::buffer::Buffer;
use crate::dropout::Site;
use crate::encoder::{LinearParams, NormTape};
use crate::error::Error;
use crate::gradients::Gradients;
use crate::ops::add;
use crate::ops::attention::{
    Attention, AttentionGradients, AttentionInputs, AttentionLayout, Seen,
};
use crate::ops::linear::Accumulator;
use crate::params::Parameters;

/// The ranges of the parameters of an attention block, and its mask.
pub(super) struct AttentionParams {
    pub(super) norm: LinearParams,
    pub(super) query: LinearParams,
    pub(super) key: LinearParams,
    pub(super) value: LinearParams,
    pub(super) output: LinearParams,
    pub(super) n_heads: usize,
    /// If true, a row attends only to itself and to the rows before it.
    pub(super) is_causal: bool,
}

/// Results of the forward pass that the backward pass needs.
#[derive(Default)]
pub(super) struct AttentionTape {
    norm: NormTape,
    queries: Buffer,
    keys: Buffer,
    values: Buffer,
    layout: AttentionLayout,
    probabilities: Buffer,
    context: Buffer,
}

impl AttentionTape {
    fn inputs(&self) -> AttentionInputs<'_> {
        AttentionInputs { queries: &self.queries, keys: &self.keys, values: &self.values }
    }
}

impl AttentionParams {
    pub(super) fn new(
        parameters: &Parameters,
        name: &str,
        n_heads: usize,
        is_causal: bool,
    ) -> Self {
        let linear = |part: &str| LinearParams::new(parameters, &format!("{name}{part}"));
        Self {
            norm: linear("_layer_norm"),
            query: linear(".q_proj"),
            key: linear(".k_proj"),
            value: linear(".v_proj"),
            output: linear(".out_proj"),
            n_heads,
            is_causal,
        }
    }

    fn attention(&self, pass: &Pass<'_>) -> Attention<'static> {
        Attention {
            n_heads: self.n_heads,
            width: pass.width,
            seen: if self.is_causal { Seen::Before } else { Seen::All },
            angles: None,
            layer: pass.layer,
            dropout: pass.dropout.dropout,
        }
    }

    /// Computes self-attention, or cross-attention to `memory` if it is given, and adds the result to `h`.
    pub(super) fn forward(
        &self,
        pass: &Pass<'_>,
        memory: Option<Memory<'_>>,
        h: &mut [f32],
        tape: &mut AttentionTape,
        work: &mut Workspace,
    ) -> Result<(), Error> {
        let (n, width) = (pass.n_rows(), pass.width);
        pass.norm(&self.norm, h, &mut tape.norm)?;
        let y = &tape.norm.y[..n * width];
        let (keys, seen) = memory.map_or((pass.batch, y), |memory| (memory.batch, memory.rows));
        tape.queries.try_reserve(n * width)?;
        tape.keys.try_reserve(seen.len())?;
        tape.values.try_reserve(seen.len())?;
        tape.context.try_reserve(n * width)?;
        pass.project(&self.query, y, &mut tape.queries[..n * width]);
        pass.project(&self.key, seen, &mut tape.keys[..seen.len()]);
        pass.project(&self.value, seen, &mut tape.values[..seen.len()]);
        tape.layout.set(pass.batch, keys, self.n_heads, width);
        tape.probabilities.try_reserve(tape.layout.n_probabilities())?;
        let AttentionTape { queries, keys, values, layout, probabilities, context, .. } = tape;
        let inputs = AttentionInputs { queries, keys, values };
        let context = &mut context[..n * width];
        self.attention(pass).forward(pass.cpu, layout, inputs, probabilities, context);
        work.rows.try_reserve(n * width)?;
        let rows = &mut work.rows[..n * width];
        let weight = pass.parameters.at(&self.output.weight);
        self.output.linear().forward(pass.cpu, context, weight, rows);
        pass.add(Site::AttentionOutput, rows, pass.parameters.at(&self.output.bias), h);
        Ok(())
    }

    /// Adds the gradient through this block to the gradient of `h` in `d`, and to the gradient of `memory`.
    pub(super) fn backward(
        &self,
        pass: &Pass<'_>,
        memory: Option<(Memory<'_>, &mut [f32])>,
        d: &mut [f32],
        tape: &AttentionTape,
        work: &mut Workspace,
        gradients: &mut Gradients,
    ) -> Result<(), Error> {
        let (n, width, cpu) = (pass.n_rows(), pass.width, pass.cpu);
        let y = &tape.norm.y[..n * width];
        let (seen, d_seen) = match memory {
            Some((memory, d_memory)) => (memory.rows, Some(d_memory)),
            None => (y, None),
        };
        work.reserve_attention(n * width, seen.len())?;
        let Workspace { rows, d_context, d_y, d_queries, d_keys, d_values, sums, .. } = work;
        let (d_rows, d_context) = (&mut rows[..n * width], &mut d_context[..n * width]);
        pass.add_backward(Site::AttentionOutput, &self.output.bias, d, d_rows, sums, gradients);
        let (context, linear) = (&tape.context[..n * width], self.output.linear());
        linear.weight_gradient(cpu, d_rows, context, gradients.slot(&self.output.weight));
        let weight = pass.parameters.at(&self.output.weight);
        linear.backward(cpu, d_rows, weight, Accumulator::overwrite(d_context));

        let (d_queries, d_y) = (&mut d_queries[..n * width], &mut d_y[..n * width]);
        let (d_keys, d_values) = (&mut d_keys[..seen.len()], &mut d_values[..seen.len()]);
        let out = AttentionGradients {
            queries: &mut *d_queries,
            keys: &mut *d_keys,
            values: &mut *d_values,
        };
        let (layout, probabilities) = (&tape.layout, &tape.probabilities[..]);
        let attention = self.attention(pass);
        attention.backward(cpu, layout, tape.inputs(), probabilities, d_context, out);

        let own = Accumulator::overwrite(d_y);
        pass.project_backward(&self.query, d_queries, y, own, sums, gradients);
        let d_seen = d_seen.unwrap_or(&mut *d_y);
        for (params, d) in [(&self.key, d_keys), (&self.value, d_values)] {
            let out = Accumulator::add_to(d_seen);
            pass.project_backward(params, d, seen, out, sums, gradients);
        }
        pass.norm_backward(&self.norm, &tape.norm, d_y, sums, gradients);
        add(cpu.isa(), d, d_y);
        Ok(())
    }
}
