//! The description of a model family: the names of its tensors and of the keys of its configuration, and where its
//! encoder differs from that of other families. The code for the CPU and for the GPU reads this description.
//!
//! All families here have the same layers: attention, then a feed-forward part, each followed by a residual sum and a
//! layer norm. They differ in names, in the embedding layer, in one place of dropout, and in whether a masked-LM head
//! exists.
//!
//! The name of a tensor in RoBERTa is called its *role*. A role means the same tensor in every family, so that
//! [`Parameters`](crate::params::Parameters) and [`Checkpoint`](crate::weights::Checkpoint) find a tensor both by its
//! role and by its own name.

/// A model family that this engine runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ModelType {
    /// `xlm-roberta`, with unigram pieces.
    XlmRoberta,
    /// `roberta`, with byte-level pieces.
    Roberta,
    /// `camembert`, a RoBERTa with unigram pieces.
    Camembert,
    /// `bert`, with `##` pieces.
    Bert,
    /// `distilbert`, with `##` pieces and without token types.
    DistilBert,
    /// `electra`, a discriminator without a masked-LM head. It can be used for taggers only.
    Electra,
}

impl ModelType {
    /// All families, in the order in which messages list them.
    pub const ALL: [Self; 6] = [
        Self::XlmRoberta,
        Self::Roberta,
        Self::Camembert,
        Self::Bert,
        Self::DistilBert,
        Self::Electra,
    ];

    /// Returns the name in `config.json`.
    pub fn name(self) -> &'static str {
        self.architecture().name
    }

    /// Returns the family with this name in `config.json`, or `None` if this engine runs no such family.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|family| family.name() == name)
    }

    /// Returns the family of a model class of transformers such as `BertForMaskedLM`. Old configurations have no
    /// `model_type`, but name the class.
    pub fn from_class(class: &str) -> Option<Self> {
        let is_own = |family: &Self| {
            class.strip_prefix(family.architecture().class).is_some_and(|rest| {
                rest.starts_with("For") || rest == "Model" || rest == "LMHeadModel"
            })
        };
        Self::ALL.into_iter().find(is_own)
    }

    /// Returns true if models of this family have a masked-LM head.
    pub fn has_masked_lm_head(self) -> bool {
        self.architecture().names.head.is_some()
    }

    pub(crate) fn architecture(self) -> &'static Architecture {
        match self {
            Self::XlmRoberta => &XLM_ROBERTA,
            Self::Roberta => &ROBERTA,
            Self::Camembert => &CAMEMBERT,
            Self::Bert => &BERT,
            Self::DistilBert => &DISTILBERT,
            Self::Electra => &ELECTRA,
        }
    }
}

/// What distinguishes a family from the others.
pub(crate) struct Architecture {
    /// The value of `model_type`.
    pub(crate) name: &'static str,
    /// The start of the names of the classes in transformers.
    pub(crate) class: &'static str,
    pub(crate) names: Names,
    pub(crate) keys: ConfigKeys,
    pub(crate) positions: Positions,
    /// True if a token-type embedding is added to the piece embedding.
    pub(crate) has_token_types: bool,
    /// True if dropout is applied to the output of attention before the residual sum.
    pub(crate) drops_attention_output: bool,
    /// The id of the padding piece if `config.json` does not give it.
    pub(crate) default_pad_id: u32,
}

/// The row of the position table for the first piece of a sentence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Positions {
    /// The row after that of the padding piece.
    AfterPadding,
    /// Row 0.
    FromZero,
}

/// The names of the parts of a model. The names of tensors end in `.weight` or `.bias` in addition.
pub(crate) struct Names {
    /// The prefix of all tensors of the encoder. A checkpoint of a bare encoder does not have it.
    pub(crate) prefix: &'static str,
    /// The list of layers, without the prefix. The number of the layer follows.
    pub(crate) layers: &'static str,
    pub(crate) layer: LayerNames,
    /// The masked-LM head, or `None` if the family has none.
    pub(crate) head: Option<HeadNames>,
}

/// The names of the parts of a layer.
pub(crate) struct LayerNames {
    /// The projections to query, key and value.
    pub(crate) qkv: [&'static str; 3],
    pub(crate) attention_output: &'static str,
    pub(crate) attention_norm: &'static str,
    pub(crate) intermediate: &'static str,
    pub(crate) output: &'static str,
    pub(crate) output_norm: &'static str,
}

/// The names of the parts of a masked-LM head.
pub(crate) struct HeadNames {
    pub(crate) dense: &'static str,
    pub(crate) norm: &'static str,
    /// The part whose `.bias` is added to the scores.
    pub(crate) output: &'static str,
    /// The output layer in files that store the tied table twice, or the bias under a second name.
    pub(crate) decoder: &'static str,
}

/// The names of keys in `config.json`.
pub(crate) struct ConfigKeys {
    pub(crate) hidden_size: &'static str,
    pub(crate) n_layers: &'static str,
    pub(crate) n_heads: &'static str,
    pub(crate) intermediate_size: &'static str,
    pub(crate) activation: &'static str,
    pub(crate) hidden_dropout: &'static str,
    pub(crate) attention_dropout: &'static str,
    /// The key of the dropout before a classifier, or `None` if it is always that of hidden rows.
    pub(crate) classifier_dropout: Option<&'static str>,
    /// The key of the epsilon of layer norm, or `None` if it is always 1e-12.
    pub(crate) layer_norm_eps: Option<&'static str>,
    /// The key of the width of the embeddings, if it may differ from that of the layers. This engine runs only models
    /// in which both are equal.
    pub(crate) embedding_size: Option<&'static str>,
}

const BERT_LAYER: LayerNames = LayerNames {
    qkv: ["attention.self.query", "attention.self.key", "attention.self.value"],
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
    classifier_dropout: Some("classifier_dropout"),
    layer_norm_eps: Some("layer_norm_eps"),
    embedding_size: None,
};

/// RoBERTa. The names of its tensors are the roles of the tensors of every family.
pub(crate) const ROBERTA: Architecture = Architecture {
    name: "roberta",
    class: "Roberta",
    names: Names {
        prefix: "roberta",
        layers: "encoder.layer",
        layer: BERT_LAYER,
        head: Some(HeadNames {
            dense: "lm_head.dense",
            norm: "lm_head.layer_norm",
            output: "lm_head",
            decoder: "lm_head.decoder",
        }),
    },
    keys: BERT_KEYS,
    positions: Positions::AfterPadding,
    has_token_types: true,
    drops_attention_output: true,
    default_pad_id: 1,
};

const XLM_ROBERTA: Architecture =
    Architecture { name: "xlm-roberta", class: "XLMRoberta", ..ROBERTA };

const CAMEMBERT: Architecture = Architecture { name: "camembert", class: "Camembert", ..ROBERTA };

const BERT: Architecture = Architecture {
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
        ..ROBERTA.names
    },
    positions: Positions::FromZero,
    default_pad_id: 0,
    ..ROBERTA
};

const DISTILBERT: Architecture = Architecture {
    name: "distilbert",
    class: "DistilBert",
    names: Names {
        prefix: "distilbert",
        layers: "transformer.layer",
        layer: LayerNames {
            qkv: ["attention.q_lin", "attention.k_lin", "attention.v_lin"],
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
        embedding_size: None,
    },
    positions: Positions::FromZero,
    has_token_types: false,
    drops_attention_output: false,
    default_pad_id: 0,
};

const ELECTRA: Architecture = Architecture {
    name: "electra",
    class: "Electra",
    names: Names { prefix: "electra", head: None, ..ROBERTA.names },
    keys: ConfigKeys { embedding_size: Some("embedding_size"), ..BERT_KEYS },
    positions: Positions::FromZero,
    default_pad_id: 0,
    ..ROBERTA
};

/// Families that are often asked for and that this engine does not run, with a model to use in place of each.
const UNSUPPORTED: [(&str, &str); 18] = [
    ("albert", "`bert-base-cased`"),
    ("big_bird", "`roberta-base`"),
    ("convbert", "`bert-base-cased`"),
    ("data2vec-text", "`roberta-base`"),
    ("deberta", "`roberta-base`"),
    ("deberta-v2", "`xlm-roberta-base` for many languages or `roberta-base` for English"),
    ("ernie", "`bert-base-cased` or `bert-base-chinese`"),
    ("eurobert", "`xlm-roberta-base`"),
    ("longformer", "`roberta-base`"),
    ("luke", "`roberta-base`"),
    ("modernbert", "`xlm-roberta-base` for many languages or `roberta-base` for English"),
    ("mpnet", "`roberta-base`"),
    ("nomic_bert", "`bert-base-uncased`"),
    ("rembert", "`xlm-roberta-large`"),
    ("roberta-prelayernorm", "`roberta-base`"),
    ("xlm", "`xlm-roberta-base`"),
    ("xlm-roberta-xl", "`xlm-roberta-large`"),
    ("xmod", "`xlm-roberta-base`"),
];

/// Returns what a message for an unsupported `model_type` expects: the families that this engine runs, and a model to
/// use in place of this one if there is a known one.
pub(crate) fn expected_types(found: Option<&str>) -> String {
    let known: Vec<_> =
        ModelType::ALL.iter().map(|family| format!("`{}`", family.name())).collect();
    let instead = UNSUPPORTED.iter().find(|(name, _)| Some(*name) == found);
    let advice = match instead {
        Some((_, instead)) => format!("use {instead} instead"),
        None => "use a model of one of these families, such as `xlm-roberta-base`".to_owned(),
    };
    format!("one of {}; this engine runs no other: {advice}", known.join(", "))
}

#[cfg(test)]
mod tests {
    use super::{ModelType, UNSUPPORTED, expected_types};

    #[test]
    fn every_family_is_found_by_its_name_and_by_its_classes() {
        for family in ModelType::ALL {
            assert_eq!(ModelType::from_name(family.name()), Some(family));
        }
        for (class, family) in [
            ("BertForPreTraining", Some(ModelType::Bert)),
            ("BertModel", Some(ModelType::Bert)),
            ("RobertaForMaskedLM", Some(ModelType::Roberta)),
            ("XLMRobertaModel", Some(ModelType::XlmRoberta)),
            ("DistilBertForTokenClassification", Some(ModelType::DistilBert)),
            ("BertweetForMaskedLM", None),
            ("RobertaPreLayerNormForMaskedLM", None),
            ("XLMRobertaXLForMaskedLM", None),
            ("", None),
        ] {
            assert_eq!(ModelType::from_class(class), family, "{class}");
        }
    }

    #[test]
    fn an_unsupported_family_gets_a_suggestion() {
        assert!(expected_types(Some("rembert")).ends_with("use `xlm-roberta-large` instead"));
        assert!(expected_types(Some("gpt2")).contains("such as `xlm-roberta-base`"));
        assert!(UNSUPPORTED.iter().all(|(name, _)| ModelType::from_name(name).is_none()));
    }
}
