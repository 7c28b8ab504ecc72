//! The names and shapes of the tensors of an XLM-R model.

use crate::config::Config;

/// A part of the model. Normally, a checkpoint contains all tensors of a part or none of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ModelPart {
    /// The embeddings and layers: `roberta.*` without the pooler.
    Encoder,
    /// The masked-LM head, `lm_head.*`. The output matrix is not listed here, because it is tied to the piece table.
    LmHead,
}

/// The name of a tensor and the shape that follows from the configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TensorShape {
    /// The Hugging Face name.
    pub(crate) name: String,
    /// The shape, outermost dimension first.
    pub(crate) shape: Vec<usize>,
}

/// Lists the tensors of a part, in the order of the forward pass.
pub(crate) fn tensor_shapes(config: &Config, part: ModelPart) -> Vec<TensorShape> {
    match part {
        ModelPart::Encoder => encoder(config),
        ModelPart::LmHead => lm_head(config),
    }
}

fn encoder(config: &Config) -> Vec<TensorShape> {
    let (hidden, inner) = (config.hidden_size, config.intermediate_size);
    let mut list = List::default();
    list.add("roberta.embeddings.word_embeddings.weight", &[config.vocab_size, hidden]);
    list.add(
        "roberta.embeddings.position_embeddings.weight",
        &[config.max_position_embeddings, hidden],
    );
    list.add("roberta.embeddings.token_type_embeddings.weight", &[config.type_vocab_size, hidden]);
    list.layer_norm("roberta.embeddings.LayerNorm", hidden);
    for layer in 0..config.n_layers {
        let layer = format!("roberta.encoder.layer.{layer}");
        for projection in ["query", "key", "value"] {
            list.linear(&format!("{layer}.attention.self.{projection}"), hidden, hidden);
        }
        list.linear(&format!("{layer}.attention.output.dense"), hidden, hidden);
        list.layer_norm(&format!("{layer}.attention.output.LayerNorm"), hidden);
        list.linear(&format!("{layer}.intermediate.dense"), inner, hidden);
        list.linear(&format!("{layer}.output.dense"), hidden, inner);
        list.layer_norm(&format!("{layer}.output.LayerNorm"), hidden);
    }
    list.tensors
}

fn lm_head(config: &Config) -> Vec<TensorShape> {
    let mut list = List::default();
    list.linear("lm_head.dense", config.hidden_size, config.hidden_size);
    list.layer_norm("lm_head.layer_norm", config.hidden_size);
    list.add("lm_head.bias", &[config.vocab_size]);
    list.tensors
}

#[derive(Default)]
struct List {
    tensors: Vec<TensorShape>,
}

impl List {
    fn add(&mut self, name: &str, shape: &[usize]) {
        self.tensors.push(TensorShape { name: name.to_owned(), shape: shape.to_vec() });
    }

    fn linear(&mut self, name: &str, outputs: usize, inputs: usize) {
        self.add(&format!("{name}.weight"), &[outputs, inputs]);
        self.add(&format!("{name}.bias"), &[outputs]);
    }

    fn layer_norm(&mut self, name: &str, width: usize) {
        self.add(&format!("{name}.weight"), &[width]);
        self.add(&format!("{name}.bias"), &[width]);
    }
}

/// Returns the name that this crate uses for a stored tensor, or `None` if the names are equal.
///
/// A checkpoint saved from `XLMRobertaModel` has no prefix `roberta.`. A checkpoint saved from an old
/// `XLMRobertaForMaskedLM` contains the tied output matrix and its bias also, or only, as `lm_head.decoder.*`.
pub(super) fn alias(stored: &str) -> Option<String> {
    match stored {
        "lm_head.decoder.weight" => Some("roberta.embeddings.word_embeddings.weight".to_owned()),
        "lm_head.decoder.bias" => Some("lm_head.bias".to_owned()),
        _ => ["embeddings.", "encoder.", "pooler."]
            .iter()
            .any(|start| stored.starts_with(start))
            .then(|| format!("roberta.{stored}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
        assert_eq!(
            alias("encoder.layer.0.output.dense.bias").unwrap(),
            "roberta.encoder.layer.0.output.dense.bias"
        );
        assert_eq!(alias("lm_head.decoder.bias").unwrap(), "lm_head.bias");
        assert_eq!(alias("roberta.embeddings.LayerNorm.bias"), None);
        assert_eq!(alias("classifier.out_proj.bias"), None);
    }
}
