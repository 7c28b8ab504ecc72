//! The configuration of an XLM-R model, as Hugging Face stores it in `config.json`.
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

/// The upper limit for a dimension of a tensor. Real models stay far below it. Because of this limit, the product of
/// two dimensions cannot overflow.
pub(crate) const LARGEST_SIZE: usize = 1 << 24;
/// The upper limit for the number of layers. Real models stay far below it. Without a limit, a malicious file could
/// make this crate list tensors for hours.
pub(crate) const MOST_LAYERS: usize = 1 << 10;

/// The model families with this architecture. They differ only in their tokenizers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ModelType {
    /// `xlm-roberta`, with unigram pieces.
    XlmRoberta,
    /// `roberta`, with byte-level pieces.
    Roberta,
}

impl ModelType {
    fn name(self) -> &'static str {
        match self {
            Self::XlmRoberta => "xlm-roberta",
            Self::Roberta => "roberta",
        }
    }
}

/// The sizes and rates of an XLM-R model. The default is XLM-R-base.
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
    /// The number of rows of the position table. The first `pad_id + 1` rows are not used.
    pub max_position_embeddings: usize,
    /// The number of rows of the token-type table. Only row 0 is used.
    pub type_vocab_size: usize,
    /// The epsilon that layer norm adds to the variance.
    pub layer_norm_eps: f32,
    /// The rate of dropout on hidden rows, in `[0, 1)`.
    pub hidden_dropout: f32,
    /// The rate of dropout on attention weights, in `[0, 1)`.
    pub attention_dropout: f32,
    /// The standard deviation of newly initialised weights.
    pub initializer_range: f32,
    /// The id of the padding piece. The first piece of a sequence has position `pad_id + 1`.
    pub pad_id: u32,
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
            initializer_range: 0.02,
            pad_id: 1,
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
        keys.refuse_unsupported()?;
        // Missing keys get the defaults of `transformers.XLMRobertaConfig`. Sizes have no default here, because the
        // default sizes of transformers are those of BERT.
        let config = Self {
            model_type: keys.model_type()?,
            vocab_size: keys.size("vocab_size", LARGEST_SIZE)?,
            hidden_size: keys.size("hidden_size", LARGEST_SIZE)?,
            n_layers: keys.size("num_hidden_layers", MOST_LAYERS)?,
            n_heads: keys.size("num_attention_heads", LARGEST_SIZE)?,
            intermediate_size: keys.size("intermediate_size", LARGEST_SIZE)?,
            max_position_embeddings: keys.size("max_position_embeddings", LARGEST_SIZE)?,
            type_vocab_size: keys.size("type_vocab_size", LARGEST_SIZE)?,
            layer_norm_eps: keys.number(
                "layer_norm_eps",
                1e-12,
                "a small positive number",
                |v| v > 0.0 && v < 1.0,
            )?,
            hidden_dropout: keys.number("hidden_dropout_prob", 0.1, RATE, is_rate)?,
            attention_dropout: keys.number("attention_probs_dropout_prob", 0.1, RATE, is_rate)?,
            initializer_range: keys.number(
                "initializer_range",
                0.02,
                "a positive number",
                |v| v > 0.0,
            )?,
            pad_id: keys.pad_id()?,
            extra: keys.map,
        };
        config.check_relations(path)?;
        Ok(config)
    }

    /// Returns the text of a `config.json` that Python's `from_pretrained` opens.
    pub fn to_json(&self) -> String {
        let mut map = self.extra.clone();
        let known = json!({
            "model_type": self.model_type.name(),
            "vocab_size": self.vocab_size,
            "hidden_size": self.hidden_size,
            "num_hidden_layers": self.n_layers,
            "num_attention_heads": self.n_heads,
            "intermediate_size": self.intermediate_size,
            "max_position_embeddings": self.max_position_embeddings,
            "type_vocab_size": self.type_vocab_size,
            "hidden_act": "gelu",
            "layer_norm_eps": shortest(self.layer_norm_eps),
            "hidden_dropout_prob": shortest(self.hidden_dropout),
            "attention_probs_dropout_prob": shortest(self.attention_dropout),
            "initializer_range": shortest(self.initializer_range),
            "pad_token_id": self.pad_id,
            "tie_word_embeddings": true,
            // Models are always saved as f32. Python relies on this key rather than on the types of the tensors.
            "dtype": "float32",
        });
        if let Value::Object(known) = known {
            map.extend(known);
        }
        map.remove("torch_dtype"); // the old name of `dtype`
        let mut text = format!("{:#}", Value::Object(map));
        text.push('\n');
        text
    }

    /// Returns the largest number of pieces of a sequence, including `<s>` and `</s>`. The first `pad_id + 1` positions
    /// are not used.
    pub fn max_pieces(&self) -> usize {
        self.max_position_embeddings - self.pad_id as usize - 1
    }

    /// Returns the dropout rate before the linear layer of a tagger: `classifier_dropout` if it is set, otherwise
    /// `hidden_dropout`, as in Hugging Face.
    pub(crate) fn classifier_dropout(&self) -> f32 {
        self.extra.get("classifier_dropout").and_then(rate_of).unwrap_or(self.hidden_dropout)
    }

    fn check_relations(&self, path: &Path) -> Result<(), Error> {
        let wrong = |key, found: usize, expected: String| {
            Err(Error::Config { path: path.to_path_buf(), key, found: found.to_string(), expected })
        };
        if !self.hidden_size.is_multiple_of(self.n_heads) {
            let expected = format!("a divisor of `hidden_size` {}", self.hidden_size);
            return wrong("num_attention_heads", self.n_heads, expected);
        }
        if self.pad_id as usize >= self.vocab_size {
            let expected = format!("less than `vocab_size` {}", self.vocab_size);
            return wrong("pad_token_id", self.pad_id as usize, expected);
        }
        // The shortest sentence is `<s> piece </s>`: three positions after the `pad_id + 1` unused ones.
        let least = self.pad_id as usize + 4;
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

pub(crate) const RATE: &str = "a rate from 0 to below 1";

pub(crate) fn is_rate(value: f64) -> bool {
    (0.0..1.0).contains(&value)
}

fn rate_of(value: &Value) -> Option<f32> {
    #[expect(clippy::cast_possible_truncation, reason = "the precision of the engine")]
    let rate = value.as_f64()? as f32;
    is_rate(f64::from(rate)).then_some(rate)
}

/// Converts to the f64 that JSON prints as the shortest decimal form of the f32, so that 0.1 is written as 0.1.
pub(crate) fn shortest(value: f32) -> f64 {
    value.to_string().parse().unwrap_or(f64::from(value))
}

/// The keys of a `config.json` that have not been read yet.
pub(crate) struct Keys<'a> {
    pub(crate) path: &'a Path,
    pub(crate) map: Map<String, Value>,
}

impl Keys<'_> {
    /// Returns the error for a key with the value `found`.
    pub(crate) fn wrong(
        &self,
        key: &'static str,
        found: Option<&Value>,
        expected: impl Into<String>,
    ) -> Error {
        let found = found.map_or_else(|| "missing".to_owned(), |value| format!("`{value}`"));
        Error::Config { path: self.path.to_path_buf(), key, found, expected: expected.into() }
    }

    /// Removes `key` and returns its value. Fails unless the value is a whole number from 1 to `most`.
    pub(crate) fn size(&mut self, key: &'static str, most: usize) -> Result<usize, Error> {
        let value = self.map.remove(key);
        let size =
            value.as_ref().and_then(Value::as_u64).and_then(|size| usize::try_from(size).ok());
        size.filter(|&size| size > 0 && size <= most).ok_or_else(|| {
            self.wrong(key, value.as_ref(), format!("a whole number from 1 to {most}"))
        })
    }

    /// Removes `key` and returns its value, or `default` if it is missing or null. Fails unless the value is a number
    /// for which `holds` returns true.
    #[expect(clippy::cast_possible_truncation, reason = "rates and epsilons are f32 everywhere")]
    pub(crate) fn number(
        &mut self,
        key: &'static str,
        default: f64,
        expected: &str,
        holds: fn(f64) -> bool,
    ) -> Result<f32, Error> {
        let Some(value) = self.map.remove(key).filter(|value| !value.is_null()) else {
            return Ok(default as f32);
        };
        // The value is also checked after conversion to f32, because a rate of 0.999999999 would be rounded to 1.
        let number = value
            .as_f64()
            .filter(|&v| holds(v) && holds(f64::from(v as f32)) && (v as f32).is_finite());
        number.map(|v| v as f32).ok_or_else(|| self.wrong(key, Some(&value), expected))
    }

    fn pad_id(&mut self) -> Result<u32, Error> {
        let Some(value) = self.map.remove("pad_token_id").filter(|value| !value.is_null()) else {
            return Ok(1);
        };
        let id = value.as_u64().and_then(|id| u32::try_from(id).ok());
        id.ok_or_else(|| self.wrong("pad_token_id", Some(&value), "the id of a piece"))
    }

    fn model_type(&mut self) -> Result<ModelType, Error> {
        let value = self.map.remove("model_type");
        match value.as_ref().and_then(Value::as_str) {
            Some("xlm-roberta") => Ok(ModelType::XlmRoberta),
            Some("roberta") => Ok(ModelType::Roberta),
            _ => Err(self.wrong(
                "model_type",
                value.as_ref(),
                "`xlm-roberta` or `roberta`; this engine runs no other",
            )),
        }
    }

    /// Fails for variants of the architecture that this engine does not run. A missing key means the supported variant.
    fn refuse_unsupported(&self) -> Result<(), Error> {
        let runs = [
            ("hidden_act", json!("gelu")),
            ("position_embedding_type", json!("absolute")),
            ("is_decoder", json!(false)),
            ("add_cross_attention", json!(false)),
            ("tie_word_embeddings", json!(true)),
        ];
        for (key, expected) in runs {
            match self.map.get(key) {
                None | Some(Value::Null) => {}
                Some(found) if *found == expected => {}
                found => {
                    return Err(self.wrong(
                        key,
                        found,
                        format!("`{expected}`; this engine runs no other"),
                    ));
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
#[path = "config_tests.rs"]
mod tests;
