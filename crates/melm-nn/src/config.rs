//! The configuration of an encoder, as Hugging Face stores it in `config.json`.
//!
//! The parser rejects a configuration that this engine cannot run. It keeps the keys that the engine does not use, and
//! they are written back when the model is saved.
//!
//! ```
//! use melm_nn::config::Config;
//! let config = Config { hidden_size: 48, n_heads: 4, ..Config::default() };
//! let again = Config::parse("config.json".as_ref(), &config.to_json())?;
//! assert_eq!(again.hidden_size, 48);
//! # Ok::<(), melm_nn::Error>(())
//! ```

use std::path::Path;

use serde_json::{Map, Value, json};

use crate::Error;
use crate::architecture::{Architecture, FeedForward, Positions};

pub use crate::architecture::ModelType;
pub(crate) use crate::config_keys::{Keys, RATE, is_rate, rate_of, shortest};
pub use crate::config_rotary::{GlobalLayers, Rotary};

/// The upper limit for a dimension of a tensor. Real models stay far below it. Because of this limit, the product of
/// two dimensions cannot overflow.
pub(crate) const LARGEST_SIZE: usize = 1 << 24;
/// The upper limit for the number of layers. Real models stay far below it. Without a limit, a malicious file could
/// make this crate list tensors for hours.
pub(crate) const MOST_LAYERS: usize = 1 << 10;

/// The family, sizes and rates of a model. The default is XLM-R-base.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// The model family.
    pub model_type: ModelType,
    /// The number of rows of the piece table, including added markers.
    pub vocab_size: usize,
    /// The width of a hidden row.
    pub hidden_size: usize,
    /// The number of transformer layers.
    pub n_layers: usize,
    /// The number of attention heads, a divisor of `hidden_size`.
    pub n_heads: usize,
    /// The inner width of the feed-forward layers.
    pub intermediate_size: usize,
    /// The number of rows of the position table. The rows before [`Self::first_position`] are not used. In families
    /// with rotary positions, the largest number of pieces of a sequence.
    pub max_position_embeddings: usize,
    /// The number of rows of the token-type table. Only row 0 is used. 0 if the family has no token types.
    pub type_vocab_size: usize,
    /// The epsilon that layer norm adds to the variance.
    pub layer_norm_eps: f32,
    /// The rate of dropout on hidden rows, in `[0, 1)`. In ModernBERT, that on the embeddings.
    pub hidden_dropout: f32,
    /// The rate of dropout on attention weights, in `[0, 1)`.
    pub attention_dropout: f32,
    /// The rate of dropout on the inner rows of the feed-forward part, in `[0, 1)`. 0 in families without it.
    pub inner_dropout: f32,
    /// The standard deviation of newly initialised weights.
    pub initializer_range: f32,
    /// The id of the padding piece. In the RoBERTa families, the first piece of a sequence has position `pad_id + 1`.
    pub pad_id: u32,
    /// The rotary positions and attention windows. Used only by families without a position table.
    pub rotary: Rotary,
    /// All other keys of the file (`architectures`, `id2label` …). They are written back when the model is saved.
    pub extra: Map<String, Value>,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            model_type: ModelType::XlmRoberta,
            vocab_size: 250_002,
            hidden_size: 768,
            n_layers: 12,
            n_heads: 12,
            intermediate_size: 3072,
            max_position_embeddings: 514,
            type_vocab_size: 1,
            layer_norm_eps: 1e-5,
            hidden_dropout: 0.1,
            attention_dropout: 0.1,
            inner_dropout: 0.0,
            initializer_range: 0.02,
            pad_id: 1,
            rotary: Rotary::default(),
            extra: Map::new(),
        }
    }
}

impl Config {
    /// Parses the text of a `config.json`. `path` is the path of that file, used in error messages.
    ///
    /// # Errors
    /// [`Error::Json`] if the text is not a JSON object, [`Error::Config`] if a key is missing, has an invalid value, or
    /// asks for an architecture that this engine does not run.
    pub fn parse(path: &Path, text: &str) -> Result<Self, Error> {
        let extra = serde_json::from_str(text)
            .map_err(|source| Error::Json { path: path.to_path_buf(), source })?;
        let mut keys = Keys { path, map: extra };
        let model_type = keys.model_type()?;
        let family = model_type.architecture();
        keys.refuse_unsupported(family)?;
        // Missing keys get the defaults of transformers. Sizes have no default here, because their defaults in
        // transformers are those of BERT in every family.
        let names = &family.keys;
        let mut config = Self {
            model_type,
            vocab_size: keys.size("vocab_size", LARGEST_SIZE)?,
            hidden_size: keys.size(names.hidden_size, LARGEST_SIZE)?,
            n_layers: keys.size(names.n_layers, MOST_LAYERS)?,
            n_heads: keys.size(names.n_heads, LARGEST_SIZE)?,
            intermediate_size: keys.size(names.intermediate_size, LARGEST_SIZE)?,
            max_position_embeddings: keys.size("max_position_embeddings", LARGEST_SIZE)?,
            type_vocab_size: if family.has_token_types {
                keys.size("type_vocab_size", LARGEST_SIZE)?
            } else {
                0
            },
            layer_norm_eps: keys.layer_norm_eps(family)?,
            hidden_dropout: keys.dropout(names.hidden_dropout, family)?,
            attention_dropout: keys.dropout(names.attention_dropout, family)?,
            inner_dropout: names.inner_dropout.map_or(Ok(0.0), |key| keys.dropout(key, family))?,
            initializer_range: keys.number(
                "initializer_range",
                0.02,
                "a positive number",
                |v| v > 0.0,
            )?,
            pad_id: keys.pad_id(family.defaults.pad_id)?,
            rotary: Rotary::default(),
            extra: Map::new(),
        };
        if family.positions == Positions::Rotary {
            config.rotary = Rotary::read(&mut keys, &config)?;
        }
        keys.check_embedding_size(family, config.hidden_size)?;
        config.extra = keys.map;
        config.check_relations(path)?;
        Ok(config)
    }

    /// Returns the text of a `config.json` that Python's `from_pretrained` opens.
    pub fn to_json(&self) -> String {
        let mut map = self.extra.clone();
        let names = &self.architecture().keys;
        let mut known = json!({
            "model_type": self.model_type.name(),
            "vocab_size": self.vocab_size,
            names.hidden_size: self.hidden_size,
            names.n_layers: self.n_layers,
            names.n_heads: self.n_heads,
            names.intermediate_size: self.intermediate_size,
            "max_position_embeddings": self.max_position_embeddings,
            names.activation: "gelu",
            names.hidden_dropout: shortest(self.hidden_dropout),
            names.attention_dropout: shortest(self.attention_dropout),
            "initializer_range": shortest(self.initializer_range),
            "pad_token_id": self.pad_id,
            "tie_word_embeddings": true,
            // Models are always saved as f32. Python relies on this key rather than on the types of the tensors.
            "dtype": "float32",
        });
        if self.architecture().has_token_types {
            known["type_vocab_size"] = self.type_vocab_size.into();
        }
        if let Some(key) = names.layer_norm_eps {
            known[key] = shortest(self.layer_norm_eps).into();
        }
        if let Some(key) = names.embedding_size {
            known[key] = self.hidden_size.into();
        }
        if let Some(key) = names.inner_dropout {
            known[key] = shortest(self.inner_dropout).into();
        }
        if let Value::Object(known) = known {
            map.extend(known);
        }
        if !self.has_position_table() {
            self.rotary.write(&mut map);
        }
        map.remove("torch_dtype"); // the old name of `dtype`
        let mut text = format!("{:#}", Value::Object(map));
        text.push('\n');
        text
    }

    /// Returns the largest number of pieces of a sequence, including the special pieces at its start and end.
    pub fn max_pieces(&self) -> usize {
        self.max_position_embeddings - self.first_position()
    }

    /// Returns the row of the position table for the first piece of a sequence. 0 if there is no table.
    pub fn first_position(&self) -> usize {
        match self.architecture().positions {
            Positions::AfterPadding => self.pad_id as usize + 1,
            Positions::FromZero | Positions::Rotary => 0,
        }
    }

    /// Returns true if positions have a table. Otherwise queries and keys are rotated.
    pub(crate) fn has_position_table(&self) -> bool {
        self.architecture().positions != Positions::Rotary
    }

    /// Returns the base of the angles of a layer, or `None` if positions have a table.
    pub(crate) fn theta(&self, layer: usize) -> Option<f64> {
        let Rotary { global_theta, local_theta, .. } = self.rotary;
        let theta = if self.rotary.is_global(layer) { global_theta } else { local_theta };
        (!self.has_position_table()).then_some(f64::from(theta))
    }

    /// Returns how many pieces on each side a piece attends to in a layer, or `None` if it attends to all.
    pub(crate) fn window(&self, layer: usize) -> Option<usize> {
        let is_local = !self.has_position_table() && !self.rotary.is_global(layer);
        is_local.then_some(self.rotary.local_attention / 2)
    }

    /// Returns the number of outputs of the first linear map of the feed-forward part: the inner width, or twice as
    /// much if the part is gated.
    pub fn intermediate_outputs(&self) -> usize {
        match self.architecture().feed_forward {
            FeedForward::Plain => self.intermediate_size,
            FeedForward::Gated => self.intermediate_size.saturating_mul(2),
        }
    }

    /// Returns the description of the family.
    pub(crate) fn architecture(&self) -> &'static Architecture {
        self.model_type.architecture()
    }

    /// Returns the dropout rate before the linear layer of a tagger: `classifier_dropout` if the family has this key and
    /// it is set, otherwise the default of the family or `hidden_dropout`, as in Hugging Face.
    pub(crate) fn classifier_dropout(&self) -> f32 {
        let family = self.architecture();
        let rate = family.keys.classifier_dropout.and_then(|key| self.extra.get(key));
        let default = family.defaults.classifier_dropout.unwrap_or(self.hidden_dropout);
        rate.and_then(rate_of).unwrap_or(default)
    }

    fn check_relations(&self, path: &Path) -> Result<(), Error> {
        let wrong = |key, found: usize, expected: String| {
            Err(Error::Config { path: path.to_path_buf(), key, found: found.to_string(), expected })
        };
        if !self.hidden_size.is_multiple_of(self.n_heads) {
            let names = &self.architecture().keys;
            let expected = format!("a divisor of `{}` {}", names.hidden_size, self.hidden_size);
            return wrong(names.n_heads, self.n_heads, expected);
        }
        let head_size = self.hidden_size / self.n_heads;
        if !self.has_position_table() && !head_size.is_multiple_of(2) {
            let names = &self.architecture().keys;
            let expected =
                format!("a divisor of half of `{}` {}", names.hidden_size, self.hidden_size);
            return wrong(names.n_heads, self.n_heads, expected);
        }
        if self.pad_id as usize >= self.vocab_size {
            let expected = format!("less than `vocab_size` {}", self.vocab_size);
            return wrong("pad_token_id", self.pad_id as usize, expected);
        }
        // The shortest sentence is `<s> piece </s>`: three positions after the unused ones.
        let least = self.first_position() + 3;
        if self.max_position_embeddings < least {
            return wrong(
                "max_position_embeddings",
                self.max_position_embeddings,
                format!("at least {least}"),
            );
        }
        match self.extra.get("classifier_dropout") {
            Some(found) if !found.is_null() && rate_of(found).is_none() => Err(Error::Config {
                path: path.to_path_buf(),
                key: "classifier_dropout",
                found: found.to_string(),
                expected: RATE.to_owned(),
            }),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
#[path = "config_tests.rs"]
mod tests;
