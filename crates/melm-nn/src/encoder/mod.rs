//! The encoder of all families. The forward pass computes hidden states from pieces. The backward pass computes the
//! gradients of the parameters from the gradient of the hidden states.
//!
//! A head (the masked-LM head or the tagger) reads [`EncoderTape::hidden`] after [`Encoder::forward`], writes the
//! gradient of these rows to [`EncoderTape::d_hidden`], and calls [`Encoder::backward`].

mod backward;
mod forward;
mod int8;
mod tape;

pub(crate) use int8::Int8Encoder;
pub(crate) use tape::EncoderTape;
pub(crate) use tape::NormTape;

use crate::architecture::{LayerNames, Residual};
use crate::config::Config;
use crate::error::Error;
use crate::ops::linear::Linear;
use crate::packed::Packed;
use crate::params::{Parameters, TABLE};
use std::iter::Rev;
use std::ops::Range;

/// The ranges of the weight and bias of a linear map or of a layer norm in the [`Parameters`].
#[derive(Clone, Debug)]
pub(crate) struct LinearParams {
    pub(crate) weight: Range<usize>,
    /// Empty if there is no bias.
    pub(crate) bias: Range<usize>,
    /// The number of outputs of a linear map, or the width of a norm.
    pub(crate) n_outputs: usize,
}

impl LinearParams {
    /// Finds the parameters of the part `name`, which may have no bias.
    ///
    /// # Panics
    /// Panics if `parameters` have no weight with this name.
    pub(crate) fn new(parameters: &Parameters, name: &str) -> Self {
        Self::joined(parameters, [name, name])
    }

    /// Finds the parameters of several parts that are adjacent and form one linear map, from the first part to the
    /// last.
    ///
    /// # Panics
    /// As [`Self::new`].
    fn joined(parameters: &Parameters, [first, last]: [&str; 2]) -> Self {
        let span =
            |kind: &str| parameters.span(&format!("{first}.{kind}"), &format!("{last}.{kind}"));
        let weight = span("weight");
        let has_bias = parameters.find(&format!("{first}.bias")).is_ok();
        let bias = if has_bias { span("bias") } else { 0..0 };
        let part = parameters.find(&format!("{first}.weight")).expect("its span was found");
        let n_outputs = weight.len() / part.shape.iter().skip(1).product::<usize>();
        Self { weight, bias, n_outputs }
    }

    fn ranges(&self) -> impl Iterator<Item = &Range<usize>> {
        [&self.weight, &self.bias].into_iter()
    }

    /// Returns the sizes of the linear map.
    pub(crate) fn linear(&self) -> Linear {
        Linear { inputs: self.weight.len() / self.n_outputs, outputs: self.n_outputs }
    }
}

/// The ranges of the parameters of one layer, by their place in the computation. Attention and the feed-forward part are
/// each followed by a residual sum and a norm.
pub(crate) struct LayerParams {
    /// The projections to query, key and value, as one linear map.
    pub(crate) qkv: LinearParams,
    pub(crate) attention_output: LinearParams,
    /// The norm after the sum with the output of attention.
    pub(crate) attention_norm: LinearParams,
    pub(crate) intermediate: LinearParams,
    pub(crate) output: LinearParams,
    /// The norm after the sum with the output of the feed-forward part. With [`Residual::Sum`], it is the first norm of
    /// the next layer, or the final norm.
    pub(crate) output_norm: LinearParams,
}

impl LayerParams {
    fn new(config: &Config, parameters: &Parameters, layer: usize) -> Self {
        let (family, roles) = (config.architecture(), config.architecture().roles);
        let own = |part: &str| roles.layer_part(layer, part);
        let linear = |name: &str| LinearParams::new(parameters, name);
        let LayerNames { qkv, attention_norm, output_norm, .. } = &roles.layer;
        let (after_attention, after_output) = match (family.residual, roles.final_norm) {
            (Residual::Normed, _) => (own(attention_norm), own(output_norm)),
            (Residual::Sum, Some(last)) if layer + 1 == config.n_layers => {
                (own(output_norm), roles.encoder_part(last))
            }
            (Residual::Sum, _) => (own(output_norm), roles.layer_part(layer + 1, attention_norm)),
        };
        Self {
            qkv: LinearParams::joined(parameters, [&own(qkv[0]), &own(qkv[qkv.len() - 1])]),
            attention_output: linear(&own(roles.layer.attention_output)),
            attention_norm: linear(&after_attention),
            intermediate: linear(&own(roles.layer.intermediate)),
            output: linear(&own(roles.layer.output)),
            output_norm: linear(&after_output),
        }
    }

    fn parts(&self) -> impl Iterator<Item = &LinearParams> {
        let Self { qkv, attention_output, attention_norm, intermediate, output, output_norm } =
            self;
        [qkv, attention_output, attention_norm, intermediate, output, output_norm].into_iter()
    }
}

/// Where a backward pass ends: at the lowest part of the encoder that is trained.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BackwardEnd {
    /// A table or the norm of the embeddings is trained, at least in part.
    Embeddings,
    /// The embeddings and all layers before this one are frozen. The gradient of its input is not needed.
    Layer(usize),
}

impl BackwardEnd {
    /// Returns the layers of the backward pass of an encoder with `n_layers` layers, in its order.
    pub(crate) fn layers(self, n_layers: usize) -> Rev<Range<usize>> {
        let first = match self {
            Self::Embeddings => 0,
            Self::Layer(first) => first,
        };
        (first..n_layers).rev()
    }
}

/// The encoder of one model: its sizes, and the ranges of its tensors in the [`Parameters`].
pub(crate) struct Encoder {
    config: Config,
    pub(crate) table: Range<usize>,
    /// The position table, or `None` if positions are rotary.
    pub(crate) positions: Option<Range<usize>>,
    /// The token-type table, or `None` if the family has none.
    pub(crate) kinds: Option<Range<usize>>,
    pub(crate) norm: LinearParams,
    pub(crate) layers: Vec<LayerParams>,
}

impl Encoder {
    /// Creates the encoder. Tensors are named by their roles, so that the code is the same for every family. They are in
    /// `parameters`, which must be laid out for `config`.
    ///
    /// # Panics
    /// Panics if `parameters` lack a tensor of the encoder.
    pub(crate) fn new(config: &Config, parameters: &Parameters) -> Self {
        let range = |name: &str| parameters.span(name, name);
        Self {
            config: config.clone(),
            table: range(TABLE),
            positions: config
                .has_position_table()
                .then(|| range("roberta.embeddings.position_embeddings.weight")),
            kinds: config
                .architecture()
                .has_token_types
                .then(|| range("roberta.embeddings.token_type_embeddings.weight")),
            norm: LinearParams::new(parameters, "roberta.embeddings.LayerNorm"),
            layers: (0..config.n_layers)
                .map(|layer| LayerParams::new(config, parameters, layer))
                .collect(),
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

    /// Returns where the backward pass ends. If the whole encoder is frozen, it ends after its last layer.
    pub(crate) fn backward_end(&self, parameters: &Parameters) -> BackwardEnd {
        let trains = |range: &Range<usize>| parameters.trains(range);
        let tables = [Some(&self.table), self.positions.as_ref(), self.kinds.as_ref()];
        if tables.into_iter().flatten().chain(self.norm.ranges()).any(trains) {
            return BackwardEnd::Embeddings;
        }
        let trained = |layer: &LayerParams| layer.parts().any(|part| part.ranges().any(trains));
        BackwardEnd::Layer(self.layers.iter().position(trained).unwrap_or(self.layers.len()))
    }

    /// Returns true if the residual is the sum before the norm.
    fn keeps_sums(&self) -> bool {
        self.config.architecture().residual == Residual::Sum
    }

    /// Returns the sizes and dropout rates.
    pub(crate) fn config(&self) -> &Config {
        &self.config
    }
}
