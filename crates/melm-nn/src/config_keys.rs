//! Reads the keys of a `config.json` one by one and names the key that is wrong.

use std::path::Path;

use serde_json::{Map, Value, json};

use crate::Error;
use crate::architecture::{Architecture, ModelType, OnlyValue, expected_types};

pub(crate) const RATE: &str = "a rate from 0 to below 1";

pub(crate) fn is_rate(value: f64) -> bool {
    (0.0..1.0).contains(&value)
}

pub(crate) fn rate_of(value: &Value) -> Option<f32> {
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

    /// Like [`Self::size`], but returns `default` if the key is missing or null.
    pub(crate) fn size_or(
        &mut self,
        key: &'static str,
        most: usize,
        default: usize,
    ) -> Result<usize, Error> {
        match self.given(key) {
            Some(_) => self.size(key, most),
            None => Ok(default),
        }
    }

    /// Returns a copy of the value of `key`, or `None` if it is missing or null. The key is not removed.
    pub(crate) fn given(&self, key: &str) -> Option<Value> {
        self.map.get(key).filter(|value| !value.is_null()).cloned()
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

    pub(crate) fn pad_id(&mut self, default: u32) -> Result<u32, Error> {
        let Some(value) = self.map.remove("pad_token_id").filter(|value| !value.is_null()) else {
            return Ok(default);
        };
        let id = value.as_u64().and_then(|id| u32::try_from(id).ok());
        id.ok_or_else(|| self.wrong("pad_token_id", Some(&value), "the id of a piece"))
    }

    /// Reads the epsilon of layer norm. Some families always use the default of transformers.
    pub(crate) fn layer_norm_eps(&mut self, family: &Architecture) -> Result<f32, Error> {
        let default = family.defaults.norm_eps;
        let Some(key) = family.keys.layer_norm_eps else { return Ok(default) };
        let holds = |value| value > 0.0 && value < 1.0;
        self.number(key, f64::from(default), "a small positive number", holds)
    }

    /// Removes the key of a rate of dropout and returns its value. A missing or null key has the default of `family`.
    pub(crate) fn dropout(
        &mut self,
        key: &'static str,
        family: &Architecture,
    ) -> Result<f32, Error> {
        self.number(key, family.defaults.dropout, RATE, is_rate)
    }

    /// Removes `model_type` and returns the family. Old files have no such key, but name a class.
    pub(crate) fn model_type(&mut self) -> Result<ModelType, Error> {
        let value = self.map.remove("model_type").filter(|value| !value.is_null());
        let Some(value) = value else {
            let class = self.map.get("architectures").and_then(|classes| classes[0].as_str());
            return class
                .and_then(ModelType::from_class)
                .ok_or_else(|| self.wrong("model_type", None, expected_types(None)));
        };
        let name = value.as_str();
        name.and_then(ModelType::from_name)
            .ok_or_else(|| self.wrong("model_type", Some(&value), expected_types(name)))
    }

    /// Fails if the embeddings have another width than the layers. transformers projects them; this engine does not.
    pub(crate) fn check_embedding_size(
        &mut self,
        family: &Architecture,
        hidden_size: usize,
    ) -> Result<(), Error> {
        let Some(key) = family.keys.embedding_size else { return Ok(()) };
        let value = self.map.remove(key);
        if value.as_ref().and_then(Value::as_u64) == Some(hidden_size as u64) {
            return Ok(());
        }
        let expected = format!(
            "{hidden_size}, the width of the layers: this engine does not project embeddings; \
             use the base or large model"
        );
        Err(self.wrong(key, value.as_ref(), expected))
    }

    /// Fails for variants of the architecture that this engine does not run. A missing key means the supported variant.
    pub(crate) fn refuse_unsupported(&self, family: &Architecture) -> Result<(), Error> {
        let runs = [
            (family.keys.activation, json!("gelu")),
            ("is_decoder", json!(false)),
            ("add_cross_attention", json!(false)),
            ("tie_word_embeddings", json!(true)),
        ];
        let own = family.keys.only.iter().map(|(key, value)| match value {
            OnlyValue::Text(text) => (*key, json!(text)),
            OnlyValue::Flag(flag) => (*key, json!(flag)),
        });
        for (key, expected) in runs.into_iter().chain(own) {
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
