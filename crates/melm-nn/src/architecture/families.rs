//! The descriptions of the families.

use super::{
    Architecture, ConfigKeys, Defaults, DropoutPlaces, FeedForward, HeadNames, InitialWeights,
    LayerNames, Names, OnlyValue, Positions, Residual,
};

const BERT_LAYER: LayerNames = LayerNames {
    qkv: &["attention.self.query", "attention.self.key", "attention.self.value"],
    attention_output: "attention.output.dense",
    attention_norm: "attention.output.LayerNorm",
    intermediate: "intermediate.dense",
    output: "output.dense",
    output_norm: "output.LayerNorm",
};

const BERT_KEYS: ConfigKeys = ConfigKeys {
    hidden_size: "hidden_size",
    n_layers: "num_hidden_layers",
    n_heads: "num_attention_heads",
    intermediate_size: "intermediate_size",
    activation: "hidden_act",
    hidden_dropout: "hidden_dropout_prob",
    attention_dropout: "attention_probs_dropout_prob",
    inner_dropout: None,
    classifier_dropout: Some("classifier_dropout"),
    layer_norm_eps: Some("layer_norm_eps"),
    embedding_size: None,
    only: &[("position_embedding_type", OnlyValue::Text("absolute"))],
};

const BERT_DEFAULTS: Defaults =
    Defaults { pad_id: 0, norm_eps: 1e-12, dropout: 0.1, classifier_dropout: None };

/// The names of the tensors of RoBERTa, which are the roles of the tensors of most families.
const ROBERTA_NAMES: Names = Names {
    prefix: "roberta",
    table: "embeddings.word_embeddings",
    embedding_norm: "embeddings.LayerNorm",
    layers: "encoder.layer",
    layer: BERT_LAYER,
    final_norm: None,
    head: Some(HeadNames {
        dense: "lm_head.dense",
        norm: "lm_head.layer_norm",
        output: "lm_head",
        decoder: "lm_head.decoder",
    }),
};

/// The roles of the tensors of families with [`Residual::Sum`] and one projection to query, key and value.
const SUM_ROLES: Names = Names {
    layer: LayerNames {
        qkv: &["attention.self.qkv"],
        attention_norm: "attention.LayerNorm",
        output_norm: "intermediate.LayerNorm",
        ..BERT_LAYER
    },
    final_norm: Some("LayerNorm"),
    ..ROBERTA_NAMES
};

pub(super) const ROBERTA: Architecture = Architecture {
    name: "roberta",
    class: "Roberta",
    names: ROBERTA_NAMES,
    roles: &ROBERTA_NAMES,
    keys: BERT_KEYS,
    defaults: Defaults { pad_id: 1, ..BERT_DEFAULTS },
    positions: Positions::AfterPadding,
    has_token_types: true,
    residual: Residual::Normed,
    feed_forward: FeedForward::Plain,
    has_biases: true,
    dropout: DropoutPlaces::BothOutputs,
    has_tagger_transform: false,
    initial: InitialWeights::Normal,
};

pub(super) const XLM_ROBERTA: Architecture =
    Architecture { name: "xlm-roberta", class: "XLMRoberta", ..ROBERTA };

pub(super) const CAMEMBERT: Architecture =
    Architecture { name: "camembert", class: "Camembert", ..ROBERTA };

pub(super) const BERT: Architecture = Architecture {
    name: "bert",
    class: "Bert",
    names: Names {
        prefix: "bert",
        head: Some(HeadNames {
            dense: "cls.predictions.transform.dense",
            norm: "cls.predictions.transform.LayerNorm",
            output: "cls.predictions",
            decoder: "cls.predictions.decoder",
        }),
        ..ROBERTA_NAMES
    },
    defaults: BERT_DEFAULTS,
    positions: Positions::FromZero,
    ..ROBERTA
};

pub(super) const DISTILBERT: Architecture = Architecture {
    name: "distilbert",
    class: "DistilBert",
    names: Names {
        prefix: "distilbert",
        layers: "transformer.layer",
        layer: LayerNames {
            qkv: &["attention.q_lin", "attention.k_lin", "attention.v_lin"],
            attention_output: "attention.out_lin",
            attention_norm: "sa_layer_norm",
            intermediate: "ffn.lin1",
            output: "ffn.lin2",
            output_norm: "output_layer_norm",
        },
        head: Some(HeadNames {
            dense: "vocab_transform",
            norm: "vocab_layer_norm",
            output: "vocab_projector",
            decoder: "vocab_projector",
        }),
        ..ROBERTA_NAMES
    },
    keys: ConfigKeys {
        hidden_size: "dim",
        n_layers: "n_layers",
        n_heads: "n_heads",
        intermediate_size: "hidden_dim",
        activation: "activation",
        hidden_dropout: "dropout",
        attention_dropout: "attention_dropout",
        classifier_dropout: None,
        layer_norm_eps: None,
        ..BERT_KEYS
    },
    defaults: BERT_DEFAULTS,
    positions: Positions::FromZero,
    has_token_types: false,
    dropout: DropoutPlaces::FeedForwardOutput,
    ..ROBERTA
};

pub(super) const ELECTRA: Architecture = Architecture {
    name: "electra",
    class: "Electra",
    names: Names { prefix: "electra", head: None, ..ROBERTA_NAMES },
    keys: ConfigKeys { embedding_size: Some("embedding_size"), ..BERT_KEYS },
    defaults: BERT_DEFAULTS,
    positions: Positions::FromZero,
    ..ROBERTA
};

/// ModernBERT and mmBERT. Only the output layers of heads have biases; transformers can switch the other biases on.
pub(super) const MODERNBERT: Architecture = Architecture {
    name: "modernbert",
    class: "ModernBert",
    names: Names {
        prefix: "model",
        table: "embeddings.tok_embeddings",
        embedding_norm: "embeddings.norm",
        layers: "layers",
        layer: LayerNames {
            qkv: &["attn.Wqkv"],
            attention_output: "attn.Wo",
            attention_norm: "attn_norm",
            intermediate: "mlp.Wi",
            output: "mlp.Wo",
            output_norm: "mlp_norm",
        },
        final_norm: Some("final_norm"),
        head: Some(HeadNames {
            dense: "head.dense",
            norm: "head.norm",
            output: "decoder",
            decoder: "decoder",
        }),
    },
    roles: &SUM_ROLES,
    keys: ConfigKeys {
        activation: "hidden_activation",
        hidden_dropout: "embedding_dropout",
        attention_dropout: "attention_dropout",
        inner_dropout: Some("mlp_dropout"),
        layer_norm_eps: Some("norm_eps"),
        only: &[
            ("attention_bias", OnlyValue::Flag(false)),
            ("mlp_bias", OnlyValue::Flag(false)),
            ("norm_bias", OnlyValue::Flag(false)),
            ("classifier_bias", OnlyValue::Flag(false)),
            ("decoder_bias", OnlyValue::Flag(true)),
            ("classifier_activation", OnlyValue::Text("gelu")),
        ],
        ..BERT_KEYS
    },
    defaults: Defaults {
        pad_id: 50_283,
        norm_eps: 1e-5,
        dropout: 0.0,
        classifier_dropout: Some(0.0),
    },
    positions: Positions::Rotary,
    has_token_types: false,
    residual: Residual::Sum,
    feed_forward: FeedForward::Gated,
    has_biases: false,
    dropout: DropoutPlaces::AttentionOutputAndInner,
    has_tagger_transform: true,
    initial: InitialWeights::TruncatedByRole,
};
