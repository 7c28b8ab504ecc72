//! The XLM-R encoder: pieces in, hidden rows out; the gradient of hidden rows in, gradients of parameters out.
//!
//! Whatever sits on top (masked-LM head, tagger) reads [`EncoderTape::hidden`] after [`Encoder::forward`], writes the gradient
//! of those rows to [`EncoderTape::d_hidden`], and calls [`Encoder::backward`].

mod backward;
mod forward;
mod tape;

pub(crate) use tape::EncoderTape;
pub(crate) use tape::NormTape;

use crate::config::Config;
use crate::ops::linear::Linear;
use crate::params::{Parameters, TABLE};
use std::ops::Range;

/// Where a linear map's numbers are.
#[derive(Clone, Debug)]
pub(crate) struct LinearParams {
    pub(crate) weight: Range<usize>,
    pub(crate) bias: Range<usize>,
}

impl LinearParams {
    pub(crate) fn of(parameters: &Parameters, name: &str) -> Self {
        let place =
            |kind: &str| parameters.span(&format!("{name}.{kind}"), &format!("{name}.{kind}"));
        Self { weight: place("weight"), bias: place("bias") }
    }
}

/// Where one layer's numbers are.
pub(crate) struct LayerParams {
    pub(crate) qkv: LinearParams,
    pub(crate) attention_output: LinearParams,
    pub(crate) attention_norm: LinearParams,
    pub(crate) intermediate: LinearParams,
    pub(crate) output: LinearParams,
    pub(crate) output_norm: LinearParams,
}

impl LayerParams {
    fn of(parameters: &Parameters, layer: usize) -> Self {
        let layer = format!("roberta.encoder.layer.{layer}");
        let own = |kind: &str| format!("{layer}.attention.self.{kind}");
        let place = |name: &str| LinearParams::of(parameters, &format!("{layer}.{name}"));
        Self {
            qkv: LinearParams {
                weight: parameters.span(&own("query.weight"), &own("value.weight")),
                bias: parameters.span(&own("query.bias"), &own("value.bias")),
            },
            attention_output: place("attention.output.dense"),
            attention_norm: place("attention.output.LayerNorm"),
            intermediate: place("intermediate.dense"),
            output: place("output.dense"),
            output_norm: place("output.LayerNorm"),
        }
    }
}

/// The encoder of one model: its sizes, and where in the [`Parameters`] its numbers are.
pub struct Encoder {
    config: Config,
    pub(crate) table: Range<usize>,
    pub(crate) positions: Range<usize>,
    pub(crate) kinds: Range<usize>,
    pub(crate) norm: LinearParams,
    pub(crate) layers: Vec<LayerParams>,
}

impl Encoder {
    /// The encoder whose numbers are in `parameters`, laid out for `config`.
    pub fn new(config: &Config, parameters: &Parameters) -> Self {
        let place = |name: &str| parameters.span(name, name);
        Self {
            config: config.clone(),
            table: place(TABLE),
            positions: place("roberta.embeddings.position_embeddings.weight"),
            kinds: place("roberta.embeddings.token_type_embeddings.weight"),
            norm: LinearParams::of(parameters, "roberta.embeddings.LayerNorm"),
            layers: (0..config.n_layers).map(|layer| LayerParams::of(parameters, layer)).collect(),
        }
    }

    /// The sizes and rates.
    pub fn config(&self) -> &Config {
        &self.config
    }

    fn linear(&self, inputs: usize, outputs: usize) -> Linear {
        let hidden = self.config.hidden_size;
        Linear { inputs: inputs * hidden, outputs: outputs * hidden }
    }

    /// The two halves of the feed-forward part.
    fn feed_forward(&self) -> (Linear, Linear) {
        let (hidden, inner) = (self.config.hidden_size, self.config.intermediate_size);
        (Linear { inputs: hidden, outputs: inner }, Linear { inputs: inner, outputs: hidden })
    }
}
