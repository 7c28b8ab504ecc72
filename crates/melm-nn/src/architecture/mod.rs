//! The description of a model family: the names of its tensors and of the keys of its configuration, and where its
//! encoder differs from that of other families. The code for the CPU and for the GPU reads this description.
//!
//! All families here have the same layers: attention, then a feed-forward part, each followed by a residual sum and a
//! layer norm. They differ in names, in positions, in what the residual is, in the feed-forward part, in biases, in
//! dropout, and in their heads.
//!
//! The name of a tensor in RoBERTa is called its *role*. A role means the same tensor in every family, so that
//! [`Parameters`](crate::params::Parameters) and [`Checkpoint`](crate::weights::Checkpoint) find a tensor both by its
//! role and by its own name. RoBERTa does not have all tensors of ModernBERT: the roles of its norms are their names in
//! RoBERTa-PreLayerNorm.

mod families;

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
    /// `modernbert`: ModernBERT with byte-level pieces, and mmBERT with the pieces of Gemma.
    ModernBert,
}

impl ModelType {
    /// All families, in the order in which messages list them.
    pub const ALL: [Self; 7] = [
        Self::XlmRoberta,
        Self::Roberta,
        Self::Camembert,
        Self::Bert,
        Self::DistilBert,
        Self::Electra,
        Self::ModernBert,
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
            Self::XlmRoberta => &families::XLM_ROBERTA,
            Self::Roberta => &families::ROBERTA,
            Self::Camembert => &families::CAMEMBERT,
            Self::Bert => &families::BERT,
            Self::DistilBert => &families::DISTILBERT,
            Self::Electra => &families::ELECTRA,
            Self::ModernBert => &families::MODERNBERT,
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
    /// The roles of the tensors, in the same form as their names.
    pub(crate) roles: &'static Names,
    pub(crate) keys: ConfigKeys,
    pub(crate) defaults: Defaults,
    pub(crate) positions: Positions,
    /// True if a token-type embedding is added to the piece embedding.
    pub(crate) has_token_types: bool,
    pub(crate) residual: Residual,
    pub(crate) feed_forward: FeedForward,
    /// True if linear maps and layer norms have biases. The output layers of heads always have one.
    pub(crate) has_biases: bool,
    pub(crate) dropout: DropoutPlaces,
    /// True if a tagger has the dense layer and the norm of the masked-LM head before its classifier.
    pub(crate) has_tagger_transform: bool,
    pub(crate) initial: InitialWeights,
}

/// How a model knows the position of a piece.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Positions {
    /// A table. The row of the first piece of a sentence is the one after that of the padding piece.
    AfterPadding,
    /// A table. The row of the first piece of a sentence is row 0.
    FromZero,
    /// No table: queries and keys are rotated by angles that grow with the position. Layers may have attention windows.
    Rotary,
}

/// What is added to the output of attention and of the feed-forward part. A norm follows each sum, and the next part
/// reads the rows after the norm.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Residual {
    /// The input of the part, which is the rows after the norm before it ("post-norm").
    Normed,
    /// The sum before that norm ("pre-norm"). Each norm then belongs to the part that follows it, and the last norm is a
    /// final norm.
    Sum,
}

/// The inner rows of the feed-forward part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FeedForward {
    /// `gelu(x W^T)`.
    Plain,
    /// `gelu(a) * b`, where `a` and `b` are the first and the second half of `x W^T` (GeGLU).
    Gated,
}

/// Where dropout is applied, besides the embeddings, the attention weights and the input of a classifier.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DropoutPlaces {
    /// On the output of attention and on that of the feed-forward part, at the rate of hidden rows.
    BothOutputs,
    /// On the output of the feed-forward part only, at the rate of hidden rows.
    FeedForwardOutput,
    /// On the output of attention at the rate of attention weights, and on the inner rows of the feed-forward part at a
    /// rate of their own.
    AttentionOutputAndInner,
}

/// The distribution of new weights. `initializer_range` of the configuration is called the range here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum InitialWeights {
    /// Normal, with the range as the standard deviation.
    Normal,
    /// Normal, but redrawn beyond some standard deviations. The range is the standard deviation. It is divided by the
    /// square root of twice the number of layers for output layers of parts, and replaced by one over the square root of
    /// the width for the classifier of a tagger.
    TruncatedByRole,
}

/// The values of keys that `config.json` does not give.
pub(crate) struct Defaults {
    pub(crate) pad_id: u32,
    pub(crate) norm_eps: f32,
    /// The rate of every dropout except that before a classifier.
    pub(crate) dropout: f64,
    /// The rate of dropout before a classifier, or `None` if it is that of hidden rows.
    pub(crate) classifier_dropout: Option<f32>,
}

/// The names of the parts of a model. The names of tensors end in `.weight` or `.bias` in addition.
pub(crate) struct Names {
    /// The prefix of all tensors of the encoder. A checkpoint of a bare encoder does not have it.
    pub(crate) prefix: &'static str,
    /// The piece table, without the prefix.
    pub(crate) table: &'static str,
    /// The norm of the embeddings, without the prefix.
    pub(crate) embedding_norm: &'static str,
    /// The list of layers, without the prefix. The number of the layer follows.
    pub(crate) layers: &'static str,
    pub(crate) layer: LayerNames,
    /// The norm after the last layer, without the prefix, in families with [`Residual::Sum`].
    pub(crate) final_norm: Option<&'static str>,
    /// The masked-LM head, or `None` if the family has none.
    pub(crate) head: Option<HeadNames>,
}

impl Names {
    /// Returns the name of a part of the encoder.
    pub(crate) fn encoder_part(&self, part: &str) -> String {
        format!("{}.{part}", self.prefix)
    }

    /// Returns the name of a part of a layer.
    pub(crate) fn layer_part(&self, layer: usize, part: &str) -> String {
        format!("{}.{}.{layer}.{part}", self.prefix, self.layers)
    }
}

/// The names of the parts of a layer.
pub(crate) struct LayerNames {
    /// The projections to query, key and value, or the only projection that computes all three.
    pub(crate) qkv: &'static [&'static str],
    pub(crate) attention_output: &'static str,
    /// The norm after attention. With [`Residual::Sum`], the norm before attention, which the first layer does not have.
    pub(crate) attention_norm: &'static str,
    pub(crate) intermediate: &'static str,
    pub(crate) output: &'static str,
    /// The norm after the feed-forward part. With [`Residual::Sum`], the norm before the feed-forward part.
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
    /// The key of the dropout on the inner rows of the feed-forward part, or `None` if there is no such dropout.
    pub(crate) inner_dropout: Option<&'static str>,
    /// The key of the dropout before a classifier, or `None` if it is always that of hidden rows.
    pub(crate) classifier_dropout: Option<&'static str>,
    /// The key of the epsilon of layer norm, or `None` if it is always the default.
    pub(crate) layer_norm_eps: Option<&'static str>,
    /// The key of the width of the embeddings, if it may differ from that of the layers. This engine runs only models
    /// in which both are equal.
    pub(crate) embedding_size: Option<&'static str>,
    /// Further keys, each with the only value that this engine runs. A missing key has this value.
    pub(crate) only: &'static [(&'static str, OnlyValue)],
}

/// The only value of a key that this engine runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OnlyValue {
    Text(&'static str),
    Flag(bool),
}

/// Families that are often asked for and that this engine does not run, with a model to use in place of each.
const UNSUPPORTED: [(&str, &str); 17] = [
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
            ("ModernBertForMaskedLM", Some(ModelType::ModernBert)),
            ("ModernBertDecoderForCausalLM", None),
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
