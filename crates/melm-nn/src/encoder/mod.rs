//! The encoder of the BERT and RoBERTa families. The forward pass computes hidden states from pieces. The backward pass computes the gradients of
//! the parameters from the gradient of the hidden states.
//!
//! A head (the masked-LM head or the tagger) reads [`EncoderTape::hidden`] after [`Encoder::forward`], writes the
//! gradient of these rows to [`EncoderTape::d_hidden`], and calls [`Encoder::backward`].

mod backward;
mod forward;
mod tape;

pub(crate) use tape::EncoderTape;
pub(crate) use tape::NormTape;

use crate::config::Config;
use crate::error::Error;
use crate::ops::linear::Linear;
use crate::packed::Packed;
use crate::params::{Parameters, TABLE};
use std::ops::Range;

/// The ranges of the weight and bias of a linear map or of a layer norm in the [`Parameters`].
#[derive(Clone, Debug)]
pub(crate) struct LinearParams {
    pub(crate) weight: Range<usize>,
    pub(crate) bias: Range<usize>,
}

impl LinearParams {
    pub(crate) fn new(parameters: &Parameters, name: &str) -> Self {
        let range = |kind: &str| {
            let name = format!("{name}.{kind}");
            parameters.span(&name, &name)
        };
        Self { weight: range("weight"), bias: range("bias") }
    }

    /// Returns the sizes of the linear map.
    pub(crate) fn linear(&self) -> Linear {
        let outputs = self.bias.len();
        Linear { inputs: self.weight.len() / outputs, outputs }
    }
}

/// The ranges of the parameters of one layer.
pub(crate) struct LayerParams {
    /// The projections to query, key and value, as one linear map.
    pub(crate) qkv: LinearParams,
    pub(crate) attention_output: LinearParams,
    pub(crate) attention_norm: LinearParams,
    pub(crate) intermediate: LinearParams,
    pub(crate) output: LinearParams,
    pub(crate) output_norm: LinearParams,
}

impl LayerParams {
    fn new(parameters: &Parameters, layer: usize) -> Self {
        let layer = format!("roberta.encoder.layer.{layer}");
        let own = |kind: &str| format!("{layer}.attention.self.{kind}");
        let linear = |name: &str| LinearParams::new(parameters, &format!("{layer}.{name}"));
        Self {
            qkv: LinearParams {
                weight: parameters.span(&own("query.weight"), &own("value.weight")),
                bias: parameters.span(&own("query.bias"), &own("value.bias")),
            },
            attention_output: linear("attention.output.dense"),
            attention_norm: linear("attention.output.LayerNorm"),
            intermediate: linear("intermediate.dense"),
            output: linear("output.dense"),
            output_norm: linear("output.LayerNorm"),
        }
    }
}

/// The encoder of one model: its sizes, and the ranges of its tensors in the [`Parameters`].
pub(crate) struct Encoder {
    config: Config,
    pub(crate) table: Range<usize>,
    pub(crate) positions: Range<usize>,
    /// The token-type table, or `None` if the family has none.
    pub(crate) kinds: Option<Range<usize>>,
    pub(crate) norm: LinearParams,
    pub(crate) layers: Vec<LayerParams>,
}

impl Encoder {
    /// Creates the encoder. Tensors are named by their roles, so that the code is the same for every family. They are in `parameters`, which must be laid out for `config`.
    ///
    /// # Panics
    /// Panics if `parameters` lack a tensor of the encoder.
    pub(crate) fn new(config: &Config, parameters: &Parameters) -> Self {
        let range = |name: &str| parameters.span(name, name);
        Self {
            config: config.clone(),
            table: range(TABLE),
            positions: range("roberta.embeddings.position_embeddings.weight"),
            kinds: config
                .architecture()
                .has_token_types
                .then(|| range("roberta.embeddings.token_type_embeddings.weight")),
            norm: LinearParams::new(parameters, "roberta.embeddings.LayerNorm"),
            layers: (0..config.n_layers).map(|layer| LayerParams::new(parameters, layer)).collect(),
        }
    }

    /// Fails if a piece is not in the vocabulary, or if a sentence is empty or too long for the model.
    pub(crate) fn check(&self, batch: &Packed) -> Result<(), Error> {
        batch.check(self.config.vocab_size, self.config.max_pieces())
    }

    /// Returns the part of the token-type table that is used: the row of type 0.
    pub(crate) fn first_kind(&self) -> Option<Range<usize>> {
        let start = self.kinds.as_ref()?.start;
        Some(start..start + self.config.hidden_size)
    }

    /// Returns the sizes and dropout rates.
    pub(crate) fn config(&self) -> &Config {
        &self.config
    }
}
