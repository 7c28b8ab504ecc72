//! The names and shapes of the tensors of a model.

use crate::architecture::{Architecture, HeadNames, Names, Residual};
use crate::config::Config;

/// A part of the model. Normally, a checkpoint contains all tensors of a part or none of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ModelPart {
    /// The embeddings and layers, without a pooler.
    Encoder,
    /// The masked-LM head. The output matrix is not listed here, because it is tied to the piece table. A family
    /// without a masked-LM head has no tensors here.
    LmHead,
}

/// The name of a tensor and the shape that follows from the configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TensorShape {
    /// The Hugging Face name.
    pub(crate) name: String,
    /// The name of the same tensor in RoBERTa; see [`crate::architecture`].
    pub(crate) role: String,
    /// The shape, outermost dimension first.
    pub(crate) shape: Vec<usize>,
}

impl TensorShape {
    /// Creates the entry of a tensor that has the same name in every family.
    pub(crate) fn new(name: impl Into<String>, shape: &[usize]) -> Self {
        let name = name.into();
        Self { role: name.clone(), name, shape: shape.to_vec() }
    }
}

/// Lists the tensors of a part, in the order of the forward pass.
pub(crate) fn tensor_shapes(config: &Config, part: ModelPart) -> Vec<TensorShape> {
    let mut list = List::new(config);
    match part {
        ModelPart::Encoder => list.add_encoder(config),
        ModelPart::LmHead => {
            list.add_transform(config);
            list.add_output_bias(config);
        }
    }
    list.tensors
}

/// Lists the dense layer and the norm of the masked-LM head if a tagger of the family has them too.
pub(crate) fn tagger_transform_shapes(config: &Config) -> Vec<TensorShape> {
    let mut list = List::new(config);
    if config.architecture().has_tagger_transform {
        list.add_transform(config);
    }
    list.tensors
}

/// A list of tensors under construction. Each part is given as a function from the names of a family to the name of the
/// part, which yields both the name and the role.
struct List {
    family: &'static Architecture,
    tensors: Vec<TensorShape>,
}

impl List {
    fn new(config: &Config) -> Self {
        Self { family: config.architecture(), tensors: Vec::new() }
    }

    fn add_encoder(&mut self, config: &Config) {
        let hidden = config.hidden_size;
        let table = |n: &Names| n.encoder_part(n.table) + ".weight";
        self.add(table, &[config.vocab_size, hidden]);
        if config.has_position_table() {
            let n_positions = config.max_position_embeddings;
            let name = |n: &Names| n.encoder_part("embeddings.position_embeddings.weight");
            self.add(name, &[n_positions, hidden]);
        }
        if self.family.has_token_types {
            let n_types = config.type_vocab_size;
            let name = |n: &Names| n.encoder_part("embeddings.token_type_embeddings.weight");
            self.add(name, &[n_types, hidden]);
        }
        self.add_norm(|n| n.encoder_part(n.embedding_norm), hidden);
        for number in 0..config.n_layers {
            self.add_layer(config, number);
        }
        if self.family.names.final_norm.is_some() {
            self.add_norm(|n| n.encoder_part(n.final_norm.unwrap_or_default()), hidden);
        }
    }

    fn add_layer(&mut self, config: &Config, number: usize) {
        let (hidden, inner) = (config.hidden_size, config.intermediate_size);
        let layer =
            |part: fn(&Names) -> &'static str| move |n: &Names| n.layer_part(number, part(n));
        let n_projections = self.family.names.layer.qkv.len();
        for index in 0..n_projections {
            let name = |n: &Names| n.layer_part(number, n.layer.qkv[index]);
            self.add_linear(name, [hidden.saturating_mul(3 / n_projections), hidden]);
        }
        self.add_linear(layer(|n| n.layer.attention_output), [hidden, hidden]);
        // With a sum as the residual, the norm before attention is missing in the first layer, because the embeddings
        // are normalised already.
        if self.family.residual == Residual::Normed || number > 0 {
            self.add_norm(layer(|n| n.layer.attention_norm), hidden);
        }
        let sizes = [config.intermediate_outputs(), hidden];
        self.add_linear(layer(|n| n.layer.intermediate), sizes);
        self.add_linear(layer(|n| n.layer.output), [hidden, inner]);
        self.add_norm(layer(|n| n.layer.output_norm), hidden);
    }

    fn add_transform(&mut self, config: &Config) {
        if self.family.names.head.is_some() {
            let hidden = config.hidden_size;
            self.add_linear(head_part(|head| head.dense), [hidden, hidden]);
            self.add_norm(head_part(|head| head.norm), hidden);
        }
    }

    fn add_output_bias(&mut self, config: &Config) {
        if self.family.names.head.is_some() {
            let output = head_part(|head| head.output);
            self.add(|n| output(n) + ".bias", &[config.vocab_size]);
        }
    }

    fn add(&mut self, name: impl Fn(&Names) -> String, shape: &[usize]) {
        let (name, role) = (name(&self.family.names), name(self.family.roles));
        self.tensors.push(TensorShape { name, role, shape: shape.to_vec() });
    }

    /// Adds the weight and the bias of a linear map with the given numbers of outputs and inputs.
    fn add_linear(&mut self, name: impl Fn(&Names) -> String, sizes: [usize; 2]) {
        self.add(|n| name(n) + ".weight", &sizes);
        self.add_bias(name, sizes[0]);
    }

    fn add_norm(&mut self, name: impl Fn(&Names) -> String, width: usize) {
        self.add(|n| name(n) + ".weight", &[width]);
        self.add_bias(name, width);
    }

    fn add_bias(&mut self, name: impl Fn(&Names) -> String, width: usize) {
        if self.family.has_biases {
            self.add(|n| name(n) + ".bias", &[width]);
        }
    }
}

/// Returns the function from the names of a family to the name of a part of its masked-LM head.
fn head_part(part: fn(&HeadNames) -> &'static str) -> impl Fn(&Names) -> String {
    move |n: &Names| n.head.as_ref().map_or_else(String::new, |head| part(head).to_owned())
}

/// Returns the name that this crate uses for a stored tensor, or `None` if the names are equal.
///
/// A checkpoint of a bare encoder such as `XLMRobertaModel` does not have the prefix of the family. An old masked
/// language model contains the tied output matrix and its bias also, or only, as the decoder of the head. Files that
/// were converted from TensorFlow call the parameters of a layer norm `gamma` and `beta`.
pub(super) fn alias(names: &Names, stored: &str) -> Option<String> {
    let renamed = [(".gamma", ".weight"), (".beta", ".bias")]
        .iter()
        .find_map(|(old, new)| Some(format!("{}{new}", stored.strip_suffix(old)?)));
    let name = renamed.as_deref().unwrap_or(stored);
    if let Some(head) = &names.head
        && let Some(kind) = name.strip_prefix(head.decoder).filter(|rest| rest.starts_with('.'))
    {
        match kind {
            ".weight" => return Some(names.encoder_part(names.table) + ".weight"),
            ".bias" if head.decoder != head.output => return Some(format!("{}.bias", head.output)),
            _ => {}
        }
    }
    let is_bare = ["embeddings.", "encoder.", "transformer.", "layers.", "final_norm.", "pooler."]
        .iter()
        .any(|start| name.starts_with(start));
    if is_bare { Some(names.encoder_part(name)) } else { renamed }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::architecture::ModelType;

    #[test]
    fn xlm_r_base_has_as_many_parameters_as_its_authors_say() {
        let count = |part| -> usize {
            tensor_shapes(&Config::default(), part)
                .iter()
                .map(|t| t.shape.iter().product::<usize>())
                .sum()
        };
        // In transformers, sum(p.numel()) of XLMRobertaForMaskedLM with this configuration is 278,295,186.
        assert_eq!(count(ModelPart::Encoder) + count(ModelPart::LmHead), 278_295_186);
        let first = &tensor_shapes(&Config::default(), ModelPart::Encoder)[0];
        assert_eq!(first.name, "roberta.embeddings.word_embeddings.weight");
        assert_eq!(first.shape, [250_002, 768]);
    }

    #[test]
    fn aliases_resolve_to_the_names_in_use() {
        let alias = |stored: &str| alias(&ModelType::Roberta.architecture().names, stored);
        assert_eq!(
            alias("encoder.layer.0.output.dense.bias").unwrap(),
            "roberta.encoder.layer.0.output.dense.bias"
        );
        assert_eq!(alias("lm_head.decoder.bias").unwrap(), "lm_head.bias");
        assert_eq!(alias("roberta.embeddings.LayerNorm.bias"), None);
        assert_eq!(alias("classifier.out_proj.bias"), None);
    }

    #[test]
    fn aliases_of_other_families_resolve() {
        for (family, stored, ours) in [
            (ModelType::Bert, "cls.predictions.decoder.bias", "cls.predictions.bias"),
            (
                ModelType::Bert,
                "cls.predictions.transform.LayerNorm.gamma",
                "cls.predictions.transform.LayerNorm.weight",
            ),
            (
                ModelType::Bert,
                "encoder.layer.1.output.LayerNorm.beta",
                "bert.encoder.layer.1.output.LayerNorm.bias",
            ),
            (
                ModelType::DistilBert,
                "vocab_projector.weight",
                "distilbert.embeddings.word_embeddings.weight",
            ),
            (
                ModelType::DistilBert,
                "transformer.layer.0.ffn.lin1.bias",
                "distilbert.transformer.layer.0.ffn.lin1.bias",
            ),
            (ModelType::ModernBert, "decoder.weight", "model.embeddings.tok_embeddings.weight"),
            (ModelType::ModernBert, "layers.1.attn.Wqkv.weight", "model.layers.1.attn.Wqkv.weight"),
            (ModelType::ModernBert, "final_norm.weight", "model.final_norm.weight"),
        ] {
            let found = alias(&family.architecture().names, stored);
            assert_eq!(found.as_deref(), Some(ours), "{stored}");
        }
        let names = &ModelType::DistilBert.architecture().names;
        assert_eq!(alias(names, "vocab_projector.bias"), None);
    }

    /// The counts are sum(p.numel()) in transformers of a model with the default configuration of its family.
    #[test]
    fn families_have_as_many_parameters_as_in_transformers() {
        let base = Config {
            vocab_size: 30_522,
            max_position_embeddings: 512,
            pad_id: 0,
            ..Config::default()
        };
        let bert = Config { model_type: ModelType::Bert, type_vocab_size: 2, ..base.clone() };
        let distilbert = Config { model_type: ModelType::DistilBert, n_layers: 6, ..base.clone() };
        let modernbert = Config {
            model_type: ModelType::ModernBert,
            vocab_size: 50_368,
            n_layers: 22,
            intermediate_size: 1152,
            ..base
        };
        for (config, wanted) in
            [(bert, 109_514_298), (distilbert, 66_985_530), (modernbert, 149_655_232)]
        {
            let parts = [ModelPart::Encoder, ModelPart::LmHead];
            let shapes = parts.into_iter().flat_map(|part| tensor_shapes(&config, part));
            let found: usize = shapes.map(|t| t.shape.iter().product::<usize>()).sum();
            assert_eq!(found, wanted, "{:?}", config.model_type);
        }
    }
}
