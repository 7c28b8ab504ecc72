//! The attention part of a layer: to its own rows, or to the encoder's.

use super::pass::{Memory, Pass, Work};
use crate::buffer::Buffer;
use crate::dropout::Site;
use crate::encoder::{LinearParams, NormTape};
use crate::gradients::Gradients;
use crate::ops::add;
use crate::ops::attend::{Attend, Cuts};
use crate::ops::linear::{Accumulator, Linear};
use crate::params::Parameters;

/// Where an attention's numbers are.
pub(super) struct AttentionParams {
    pub(super) norm: LinearParams,
    pub(super) q: LinearParams,
    pub(super) k: LinearParams,
    pub(super) v: LinearParams,
    pub(super) out: LinearParams,
    pub(super) n_heads: usize,
    /// Whether a row sees only itself and those before.
    pub(super) is_causal: bool,
}

#[derive(Default)]
pub(super) struct AttentionTape {
    norm: NormTape,
    q: Buffer,
    k: Buffer,
    v: Buffer,
    cuts: Cuts,
    probabilities: Buffer,
    context: Buffer,
}

impl AttentionParams {
    pub(super) fn of(parameters: &Parameters, name: &str, n_heads: usize, is_causal: bool) -> Self {
        let place = |part: &str| LinearParams::of(parameters, &format!("{name}{part}"));
        Self {
            norm: place("_layer_norm"),
            q: place(".q_proj"),
            k: place(".k_proj"),
            v: place(".v_proj"),
            out: place(".out_proj"),
            n_heads,
            is_causal,
        }
    }

    fn attend(&self, pass: &Pass<'_>) -> Attend {
        Attend {
            n_heads: self.n_heads,
            hidden: pass.width(),
            is_causal: self.is_causal,
            layer: pass.layer,
            dropout: pass.dropout,
        }
    }

    /// Attends to the rows themselves, or to a memory, and adds what comes of it to `h`.
    pub(super) fn forward(
        &self,
        pass: &Pass<'_>,
        memory: Option<Memory<'_>>,
        h: &mut [f32],
        (tape, work): (&mut AttentionTape, &mut Work),
    ) {
        let (n, width) = (pass.n_rows(), pass.width());
        let linear = Linear { inputs: width, outputs: width };
        pass.norm(&self.norm, h, &mut tape.norm);
        let y = &tape.norm.y[..n * width];
        let (keys, seen) = memory.map_or((pass.batch, y), |memory| (memory.batch, memory.rows));
        tape.q.reserve(n * width);
        tape.k.reserve(seen.len());
        tape.v.reserve(seen.len());
        tape.context.reserve(n * width);
        pass.project((&self.q, linear), y, &mut tape.q[..n * width]);
        pass.project((&self.k, linear), seen, &mut tape.k[..seen.len()]);
        pass.project((&self.v, linear), seen, &mut tape.v[..seen.len()]);
        let attend = self.attend(pass);
        tape.cuts.set(pass.batch, keys, &attend);
        tape.probabilities.reserve(tape.cuts.n_probabilities());
        let AttentionTape { q, k, v, cuts, probabilities, context, .. } = tape;
        let context = &mut context[..n * width];
        let out = (&mut probabilities[..], &mut *context);
        attend.forward(pass.cpu, (pass.batch, cuts), [q, k, v], out);
        work.made.reserve(n * width);
        let made = &mut work.made[..n * width];
        linear.forward(pass.cpu, n, (context, pass.parameters.at(&self.out.weight)), made);
        pass.add(Site::AttentionOutput, (made, pass.parameters.at(&self.out.bias)), h);
    }

    /// Adds to the gradient of `h` in `d`, and to that of the memory.
    pub(super) fn backward(
        &self,
        pass: &Pass<'_>,
        memory: Option<(Memory<'_>, &mut [f32])>,
        d: &mut [f32],
        (tape, work): (&AttentionTape, &mut Work),
        gradients: &mut Gradients,
    ) {
        let (n, width) = (pass.n_rows(), pass.width());
        let linear = Linear { inputs: width, outputs: width };
        let y = &tape.norm.y[..n * width];
        let (seen, d_seen) = match memory {
            Some((memory, d_memory)) => (memory.rows, Some(d_memory)),
            None => (y, None),
        };
        for (buffer, len) in [
            (&mut work.made, n * width),
            (&mut work.d_context, n * width),
            (&mut work.d_y, n * width),
            (&mut work.d_q, n * width),
            (&mut work.d_k, seen.len()),
            (&mut work.d_v, seen.len()),
        ] {
            buffer.reserve(len);
        }
        let Work { made, d_context, d_y, d_q, d_k, d_v, sums, .. } = work;
        let (made, d_context) = (&mut made[..n * width], &mut d_context[..n * width]);
        let site = (Site::AttentionOutput, &self.out.bias);
        pass.add_backward(site, (d, made), (sums, gradients));
        let context = &tape.context[..n * width];
        let slot = gradients.slot(&self.out.weight);
        linear.weight_gradient(pass.cpu, n, (made, context), slot);
        let to = Accumulator { data: d_context, accumulates: false };
        linear.backward(pass.cpu, n, (made, pass.parameters.at(&self.out.weight)), to);
        let saved = ([&tape.q[..], &tape.k[..], &tape.v[..]], &tape.probabilities[..], &*d_context);
        let (d_q, d_y) = (&mut d_q[..n * width], &mut d_y[..n * width]);
        let (d_k, d_v) = (&mut d_k[..seen.len()], &mut d_v[..seen.len()]);
        let out = [&mut *d_q, &mut *d_k, &mut *d_v];
        self.attend(pass).backward(pass.cpu, (pass.batch, &tape.cuts), saved, out);
        let own = Accumulator { data: &mut *d_y, accumulates: false };
        let places = (&mut *sums, &mut *gradients);
        pass.project_backward((&self.q, linear), (d_q, y, Some(own)), places);
        let d_seen = d_seen.unwrap_or(&mut *d_y);
        for (place, d) in [(&self.k, d_k), (&self.v, d_v)] {
            let to = Accumulator { data: &mut *d_seen, accumulates: true };
            let places = (&mut *sums, &mut *gradients);
            pass.project_backward((place, linear), (d, seen, Some(to)), places);
        }
        pass.norm_backward(&self.norm, (&tape.norm, d_y), (sums, gradients));
        add(pass.cpu.isa(), d, d_y);
    }
}
