//! The feed-forward block of a layer.

use super::pass::{Pass, Workspace};
use crate::buffer::Buffer;
use crate::dropout::Site;
use crate::encoder::{LinearParams, NormTape};
use crate::error::Error;
use crate::gradients::Gradients;
use crate::ops::linear::Accumulator;
use crate::ops::{add, gelu};
use crate::params::Parameters;

/// The ranges of the parameters of a feed-forward block.
pub(super) struct FeedForwardParams {
    pub(super) norm: LinearParams,
    pub(super) up: LinearParams,
    pub(super) down: LinearParams,
    pub(super) inner: usize,
}

/// Results of the forward pass that the backward pass needs.
#[derive(Default)]
pub(super) struct FeedForwardTape {
    norm: NormTape,
    /// The inner rows before the GELU, `[rows, inner]`.
    inner: Buffer,
}

impl FeedForwardParams {
    pub(super) fn new(parameters: &Parameters, layer: &str, inner: usize) -> Self {
        let linear = |part: &str| LinearParams::new(parameters, &format!("{layer}.{part}"));
        Self { norm: linear("final_layer_norm"), up: linear("fc1"), down: linear("fc2"), inner }
    }

    /// Adds the result of the feed-forward block to `h`.
    pub(super) fn forward(
        &self,
        pass: &Pass<'_>,
        h: &mut [f32],
        tape: &mut FeedForwardTape,
        work: &mut Workspace,
    ) -> Result<(), Error> {
        let (len, wide) = (pass.n_rows() * pass.width, pass.n_rows() * self.inner);
        let (cpu, parameters) = (pass.cpu, pass.parameters);
        pass.norm(&self.norm, h, &mut tape.norm)?;
        tape.inner.try_reserve(wide)?;
        work.inner.try_reserve(wide)?;
        work.rows.try_reserve(len)?;
        let y = &tape.norm.y[..len];
        let (before, after) = (&mut tape.inner[..wide], &mut work.inner[..wide]);
        self.up.linear().forward(cpu, y, parameters.at(&self.up.weight), before);
        gelu::forward(cpu, self.inner, parameters.at(&self.up.bias), before, after);
        let rows = &mut work.rows[..len];
        self.down.linear().forward(cpu, after, parameters.at(&self.down.weight), rows);
        pass.add(Site::Output, rows, parameters.at(&self.down.bias), h);
        Ok(())
    }

    /// Adds the gradient through this block to the gradient of `h` in `d`.
    pub(super) fn backward(
        &self,
        pass: &Pass<'_>,
        d: &mut [f32],
        tape: &FeedForwardTape,
        work: &mut Workspace,
        gradients: &mut Gradients,
    ) -> Result<(), Error> {
        let (len, wide) = (pass.n_rows() * pass.width, pass.n_rows() * self.inner);
        let (cpu, parameters) = (pass.cpu, pass.parameters);
        let (up, down) = (self.up.linear(), self.down.linear());
        work.rows.try_reserve(len)?;
        work.d_y.try_reserve(len)?;
        work.inner.try_reserve(wide)?;
        work.d_inner.try_reserve(wide)?;
        let Workspace { rows, inner, d_inner, d_y, sums, .. } = work;
        let (d_rows, d_y) = (&mut rows[..len], &mut d_y[..len]);
        let (after, d_inner) = (&mut inner[..wide], &mut d_inner[..wide]);
        pass.add_backward(Site::Output, &self.down.bias, d, d_rows, sums, gradients);
        let weight = parameters.at(&self.down.weight);
        down.backward(cpu, d_rows, weight, Accumulator::overwrite(d_inner));
        gelu::backward(cpu, self.inner, &tape.inner[..wide], d_inner, after, sums);
        sums.finish_into(cpu, 0, gradients.slot(&self.up.bias));
        down.weight_gradient(cpu, d_rows, after, gradients.slot(&self.down.weight));
        let y = &tape.norm.y[..len];
        up.weight_gradient(cpu, d_inner, y, gradients.slot(&self.up.weight));
        let weight = parameters.at(&self.up.weight);
        up.backward(cpu, d_inner, weight, Accumulator::overwrite(d_y));
        pass.norm_backward(&self.norm, &tape.norm, d_y, sums, gradients);
        add(cpu.isa(), d, d_y);
        Ok(())
    }
}
