//! The feed-forward part of a layer.
#![expect(clippy::many_single_char_names, reason = "the letters of the engine's layers")]

use super::pass::{Pass, Work};
use crate::buffer::Buffer;
use crate::dropout::Site;
use crate::encoder::{LinearParams, NormTape};
use crate::gradients::Gradients;
use crate::ops::linear::{Accumulator, Linear};
use crate::ops::{add, gelu};
use crate::params::Parameters;

/// Where a feed-forward part's numbers are.
pub(super) struct FeedForwardParams {
    pub(super) norm: LinearParams,
    pub(super) up: LinearParams,
    pub(super) down: LinearParams,
    pub(super) inner: usize,
}

#[derive(Default)]
pub(super) struct FeedForwardTape {
    norm: NormTape,
    /// Before the gelu.
    inner: Buffer,
}

impl FeedForwardParams {
    pub(super) fn of(parameters: &Parameters, layer: &str, inner: usize) -> Self {
        let place = |part: &str| LinearParams::of(parameters, &format!("{layer}.{part}"));
        Self { norm: place("final_layer_norm"), up: place("fc1"), down: place("fc2"), inner }
    }

    fn linears(&self, pass: &Pass<'_>) -> (Linear, Linear) {
        let (width, inner) = (pass.width(), self.inner);
        (Linear { inputs: width, outputs: inner }, Linear { inputs: inner, outputs: width })
    }

    pub(super) fn forward(
        &self,
        pass: &Pass<'_>,
        h: &mut [f32],
        (tape, work): (&mut FeedForwardTape, &mut Work),
    ) {
        let (n, width, wide) = (pass.n_rows(), pass.width(), pass.n_rows() * self.inner);
        let (up, down) = self.linears(pass);
        pass.norm(&self.norm, h, &mut tape.norm);
        tape.inner.reserve(wide);
        work.inner.reserve(wide);
        work.made.reserve(n * width);
        let y = &tape.norm.y[..n * width];
        let (u, g) = (&mut tape.inner[..wide], &mut work.inner[..wide]);
        up.forward(pass.cpu, n, (y, pass.parameters.at(&self.up.weight)), u);
        gelu::forward(pass.cpu, pass.parameters.at(&self.up.bias), u, g);
        let made = &mut work.made[..n * width];
        down.forward(pass.cpu, n, (g, pass.parameters.at(&self.down.weight)), made);
        pass.add(Site::Output, (made, pass.parameters.at(&self.down.bias)), h);
    }

    /// Adds to the gradient of `h` in `d`.
    pub(super) fn backward(
        &self,
        pass: &Pass<'_>,
        d: &mut [f32],
        (tape, work): (&FeedForwardTape, &mut Work),
        gradients: &mut Gradients,
    ) {
        let (n, width, wide) = (pass.n_rows(), pass.width(), pass.n_rows() * self.inner);
        let (up, down) = self.linears(pass);
        work.made.reserve(n * width);
        work.d_y.reserve(n * width);
        work.inner.reserve(wide);
        work.d_inner.reserve(wide);
        let Work { made, inner, d_inner, d_y, sums, .. } = work;
        let (made, d_y) = (&mut made[..n * width], &mut d_y[..n * width]);
        let (g, d_inner) = (&mut inner[..wide], &mut d_inner[..wide]);
        let site = (Site::Output, &self.down.bias);
        pass.add_backward(site, (d, made), (sums, gradients));
        let to = Accumulator { data: &mut *d_inner, accumulates: false };
        down.backward(pass.cpu, n, (made, pass.parameters.at(&self.down.weight)), to);
        let u = &tape.inner[..wide];
        let shape = gelu::backward(pass.cpu, u, d_inner, g, (sums, self.inner));
        sums.finish_into(pass.cpu, shape, 0, gradients.slot(&self.up.bias));
        down.weight_gradient(pass.cpu, n, (made, g), gradients.slot(&self.down.weight));
        let y = &tape.norm.y[..n * width];
        up.weight_gradient(pass.cpu, n, (d_inner, y), gradients.slot(&self.up.weight));
        let to = Accumulator { data: &mut *d_y, accumulates: false };
        up.backward(pass.cpu, n, (d_inner, pass.parameters.at(&self.up.weight)), to);
        pass.norm_backward(&self.norm, (&tape.norm, d_y), (sums, gradients));
        add(pass.cpu.isa(), d, d_y);
    }
}
