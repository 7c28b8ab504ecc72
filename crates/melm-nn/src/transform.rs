//! The dense layer, the GELU and the layer norm between the encoder and the output layer of a head. Masked-LM heads have
//! them, and in some families taggers too. They are computed only at the rows that the head reads.

use crate::buffer::Buffer;
use crate::config::Config;
use crate::device::Cpu;
use crate::encoder::{LinearParams, NormTape};
use crate::error::Error;
use crate::gradients::Gradients;
use crate::ops::linear::Accumulator;
use crate::ops::norm::{Affine, NormOutput, norm_input_gradients, normalise_rows};
use crate::ops::{ColumnSums, gelu};
use crate::params::Parameters;

/// The ranges of the parameters of the dense layer and the norm.
pub(crate) struct HeadTransform {
    pub(crate) dense: LinearParams,
    pub(crate) norm: LinearParams,
    width: usize,
    eps: f32,
}

/// Working memory of a [`HeadTransform`].
#[derive(Default)]
pub(crate) struct TransformTape {
    /// The output of the dense layer before the GELU (`dense`) and after it (`activated`).
    dense: Buffer,
    activated: Buffer,
    norm: NormTape,
    d_hidden: Buffer,
    sums: ColumnSums,
}

impl TransformTape {
    /// Returns the gradient of the hidden states that [`HeadTransform::backward`] has computed for `n_rows` rows.
    pub(crate) fn d_hidden(&self, n_rows: usize, width: usize) -> &[f32] {
        &self.d_hidden[..n_rows * width]
    }
}

impl HeadTransform {
    /// Finds the parameters by their roles.
    pub(crate) fn new(config: &Config, parameters: &Parameters) -> Self {
        Self {
            dense: LinearParams::new(parameters, "lm_head.dense"),
            norm: LinearParams::new(parameters, "lm_head.layer_norm"),
            width: config.hidden_size,
            eps: config.layer_norm_eps,
        }
    }

    /// Computes the rows that the output layer reads from the hidden states. Writes them to `states`.
    pub(crate) fn forward(
        &self,
        cpu: &Cpu,
        parameters: &Parameters,
        hidden: &[f32],
        tape: &mut TransformTape,
        states: &mut [f32],
    ) -> Result<(), Error> {
        let (n, width) = (hidden.len() / self.width, self.width);
        for buffer in [&mut tape.dense, &mut tape.activated] {
            buffer.try_reserve(n * width)?;
        }
        tape.norm.try_reserve(n, width)?;
        let dense = &mut tape.dense[..n * width];
        self.dense.linear().forward(cpu, hidden, parameters.at(&self.dense.weight), dense);
        let NormOutput { normed, scale, .. } = tape.norm.output(n, width);
        gelu::forward(cpu, width, parameters.at(&self.dense.bias), dense, normed);
        let affine = Affine {
            weight: parameters.at(&self.norm.weight),
            bias: parameters.at(&self.norm.bias),
            eps: self.eps,
        };
        normalise_rows(cpu, affine, NormOutput { normed, scale, y: states });
        Ok(())
    }

    /// Computes the gradient of the hidden states from the gradient `d` of the rows that [`Self::forward`] wrote. `d` is
    /// overwritten.
    pub(crate) fn backward(
        &self,
        cpu: &Cpu,
        parameters: &Parameters,
        hidden: &[f32],
        d: &mut [f32],
        tape: &mut TransformTape,
        gradients: &mut Gradients,
    ) -> Result<(), Error> {
        let width = self.width;
        let n = d.len() / width;
        let weight = parameters.at(&self.norm.weight);
        norm_input_gradients(cpu, weight, tape.norm.saved(n, width), d, &mut tape.sums);
        tape.sums.finish_into(cpu, 0, gradients.slot(&self.norm.weight));
        tape.sums.finish_into(cpu, width, gradients.slot(&self.norm.bias));
        let (dense, activated) = (&tape.dense[..n * width], &mut tape.activated[..n * width]);
        gelu::backward(cpu, width, dense, d, activated, &mut tape.sums);
        tape.sums.finish_into(cpu, 0, gradients.slot(&self.dense.bias));
        let linear = self.dense.linear();
        if parameters.trains(&self.dense.weight) {
            linear.weight_gradient(cpu, d, hidden, gradients.slot(&self.dense.weight));
        }
        tape.d_hidden.try_reserve(n * width)?;
        let out = Accumulator::overwrite(&mut tape.d_hidden[..n * width]);
        linear.backward(cpu, d, parameters.at(&self.dense.weight), out);
        Ok(())
    }
}
