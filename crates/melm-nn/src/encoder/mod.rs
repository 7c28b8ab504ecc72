//! The XLM-R encoder: pieces in, hidden rows out; the gradient of hidden rows in, gradients of parameters out.
//!
//! Whatever sits on top (masked-LM head, tagger) reads [`Tape::hidden`] after [`Encoder::forward`], writes the gradient
//! of those rows to [`Tape::d_hidden`], and calls [`Encoder::backward`].

mod backward;
mod forward;
mod tape;

pub(crate) use tape::NormTape;
pub use tape::Tape;

use crate::config::Config;
use crate::ops::linear::Linear;
use crate::params::{Parameters, TABLE};
use std::ops::Range;

/// Where a linear map's numbers are.
#[derive(Clone, Debug)]
pub(crate) struct LinearPlace {
    pub(crate) weight: Range<usize>,
    pub(crate) bias: Range<usize>,
}

impl LinearPlace {
    pub(crate) fn of(parameters: &Parameters, name: &str) -> Self {
        let place =
            |kind: &str| parameters.span(&format!("{name}.{kind}"), &format!("{name}.{kind}"));
        Self { weight: place("weight"), bias: place("bias") }
    }
}

/// Where one layer's numbers are.
pub(crate) struct LayerPlace {
    pub(crate) qkv: LinearPlace,
    pub(crate) attention_output: LinearPlace,
    pub(crate) attention_norm: LinearPlace,
    pub(crate) intermediate: LinearPlace,
    pub(crate) output: LinearPlace,
    pub(crate) output_norm: LinearPlace,
}

impl LayerPlace {
    fn of(parameters: &Parameters, layer: usize) -> Self {
        let layer = format!("roberta.encoder.layer.{layer}");
        let own = |kind: &str| format!("{layer}.attention.self.{kind}");
        let place = |name: &str| LinearPlace::of(parameters, &format!("{layer}.{name}"));
        Self {
            qkv: LinearPlace {
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
    pub(crate) norm: LinearPlace,
    pub(crate) layers: Vec<LayerPlace>,
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
            norm: LinearPlace::of(parameters, "roberta.embeddings.LayerNorm"),
            layers: (0..config.n_layers).map(|layer| LayerPlace::of(parameters, layer)).collect(),
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
