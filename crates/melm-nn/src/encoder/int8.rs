//! The 8-bit weights of an encoder.

use super::{Encoder, LayerParams, LinearParams};
use crate::device::Cpu;
use crate::error::Error;
use crate::int8::{Finish, Int8Linear, QuantizedRows};
use crate::params::Parameters;

/// The 8-bit weights of the linear maps of one layer.
pub(crate) struct Int8Layer {
    pub(super) qkv: Int8Linear,
    pub(super) attention_output: Int8Linear,
    pub(super) intermediate: Int8Linear,
    pub(super) output: Int8Linear,
}

/// The number of rows for each thread for which the whole feed-forward part is computed at a time, so that the rows between
/// its two products stay in the second-level cache.
const FEED_FORWARD_ROWS: usize = 96;

impl Int8Layer {
    /// Computes the feed-forward part: a product, the GELU and a second product, without the last bias. `rows` and `inner`
    /// are working memory.
    pub(super) fn feed_forward(
        &self,
        cpu: &Cpu,
        bias: &[f32],
        x: &[f32],
        rows: &mut QuantizedRows,
        inner: &mut [f32],
        y: &mut [f32],
    ) {
        let (hidden, width) = (self.output.outputs(), self.intermediate.outputs());
        let block = FEED_FORWARD_ROWS * cpu.n_threads() * hidden;
        for (x, y) in x.chunks(block).zip(y.chunks_mut(block)) {
            let inner = &mut inner[..x.len() / hidden * width];
            rows.set(cpu.isa(), x, hidden);
            self.intermediate.forward(cpu, rows, Finish::Gelu(bias), inner);
            rows.set(cpu.isa(), inner, width);
            self.output.forward(cpu, rows, Finish::Plain, y);
        }
    }
}

/// The 8-bit weights of the linear maps of an encoder. Embeddings, norms and biases stay in f32.
pub(crate) struct Int8Encoder {
    layers: Vec<Int8Layer>,
}

impl Int8Encoder {
    /// Quantizes the weights of an encoder.
    ///
    /// # Errors
    /// As [`Int8Linear::new`].
    pub(crate) fn new(encoder: &Encoder, parameters: &Parameters) -> Result<Self, Error> {
        let quantize =
            |map: &LinearParams| Int8Linear::new(map.linear(), parameters.at(&map.weight));
        let layer = |layer: &LayerParams| {
            Ok(Int8Layer {
                qkv: quantize(&layer.qkv)?,
                attention_output: quantize(&layer.attention_output)?,
                intermediate: quantize(&layer.intermediate)?,
                output: quantize(&layer.output)?,
            })
        };
        Ok(Self { layers: encoder.layers.iter().map(layer).collect::<Result<_, Error>>()? })
    }
}

/// The weights of a forward pass: those in f32, and those of the linear maps in 8 bits if they are used.
#[derive(Clone, Copy)]
pub(super) struct Weights<'a> {
    pub(super) parameters: &'a Parameters,
    pub(super) int8: Option<&'a Int8Encoder>,
}

impl<'a> Weights<'a> {
    /// Returns the 8-bit weights of a layer, if they are used.
    pub(super) fn layer(self, layer: usize) -> Option<&'a Int8Layer> {
        self.int8.map(|encoder| &encoder.layers[layer])
    }

    /// Computes `y = x W^T` without a bias: with the 8-bit weights `int8` if they are given, otherwise in f32. `rows` is
    /// working memory.
    pub(super) fn multiply(
        self,
        cpu: &Cpu,
        map: &LinearParams,
        int8: Option<&Int8Linear>,
        x: &[f32],
        rows: &mut QuantizedRows,
        y: &mut [f32],
    ) {
        let Some(int8) = int8 else {
            return map.linear().forward(cpu, x, self.parameters.at(&map.weight), y);
        };
        rows.set(cpu.isa(), x, map.linear().inputs);
        int8.forward(cpu, rows, Finish::Plain, y);
    }
}
