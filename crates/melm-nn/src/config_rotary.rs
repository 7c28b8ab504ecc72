//! The rotary positions and the attention windows of ModernBERT, as `config.json` describes them.

use serde_json::{Map, Value, json};

use crate::Error;
use crate::config::{Config, LARGEST_SIZE};
use crate::config_keys::{Keys, shortest};

/// The layers in which a piece attends to the whole sentence. In the other layers, it attends to a window.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GlobalLayers {
    /// Layer 0 and every layer whose number is a multiple of this number.
    Every(usize),
    /// For each layer, true if its attention is global.
    Listed(Vec<bool>),
}

/// The rotary positions and the attention windows of a model. The default is that of ModernBERT. Families with a table of
/// positions do not use it.
#[derive(Clone, Debug, PartialEq)]
pub struct Rotary {
    /// The base of the angles in layers with global attention.
    pub global_theta: f32,
    /// The base of the angles in layers with local attention.
    pub local_theta: f32,
    /// The width of the window of local attention. A piece attends to half as many pieces on each side.
    pub local_attention: usize,
    /// The layers with global attention.
    pub global_layers: GlobalLayers,
}

impl Default for Rotary {
    fn default() -> Self {
        Self {
            global_theta: 160_000.0,
            local_theta: 10_000.0,
            local_attention: 128,
            global_layers: GlobalLayers::Every(3),
        }
    }
}

const GLOBAL: &str = "full_attention";
const LOCAL: &str = "sliding_attention";
const THETA: &str = "a number of at least 1";

impl Rotary {
    /// Returns true if the attention of a layer is global.
    pub(crate) fn is_global(&self, layer: usize) -> bool {
        match &self.global_layers {
            GlobalLayers::Every(n) => layer.is_multiple_of(*n),
            GlobalLayers::Listed(list) => list.get(layer).copied().unwrap_or(true),
        }
    }

    /// Reads the keys. Files of transformers 5 have `rope_parameters` and `layer_types`; older files have
    /// `global_rope_theta`, `local_rope_theta` and `global_attn_every_n_layers`. Keys of the newer form are not
    /// removed, so that they are written back as they are.
    ///
    /// # Errors
    /// [`Error::Config`] if a key has an invalid value, or asks for angles that this engine does not compute.
    pub(crate) fn read(keys: &mut Keys<'_>, config: &Config) -> Result<Self, Error> {
        let default = Self::default();
        if let Some(found) = keys.given("rope_scaling") {
            let expected = "null; this engine does not scale angles";
            return Err(keys.wrong("rope_scaling", Some(&found), expected));
        }
        let head_size = json!(config.hidden_size / config.n_heads);
        if let Some(found) = keys.given("head_dim").filter(|found| *found != head_size) {
            return Err(keys.wrong("head_dim", Some(&found), head_size.to_string()));
        }
        let [global_theta, local_theta] = match keys.given("rope_parameters") {
            Some(parameters) => {
                let old = |key, default| {
                    keys.given(key).as_ref().and_then(checked_theta).unwrap_or(default)
                };
                let global = old("global_rope_theta", default.global_theta);
                let local = old("local_rope_theta", default.local_theta);
                [
                    theta_of(keys, &parameters, GLOBAL, global)?,
                    theta_of(keys, &parameters, LOCAL, local)?,
                ]
            }
            None => old_thetas(keys, &default)?,
        };
        let local_attention =
            keys.size_or("local_attention", LARGEST_SIZE, default.local_attention)?;
        let global_layers = if let Some(types) = keys.given("layer_types") {
            GlobalLayers::Listed(listed_layers(keys, &types, config.n_layers)?)
        } else {
            GlobalLayers::Every(keys.size_or("global_attn_every_n_layers", LARGEST_SIZE, 3)?)
        };
        Ok(Self { global_theta, local_theta, local_attention, global_layers })
    }

    /// Adds the keys to those of a configuration, unless they are there in the newer form.
    pub(crate) fn write(&self, map: &mut Map<String, Value>) {
        map.insert("local_attention".to_owned(), self.local_attention.into());
        let lacks = |map: &Map<_, Value>, key| map.get(key).is_none_or(Value::is_null);
        if lacks(map, "rope_parameters") {
            map.insert("global_rope_theta".to_owned(), shortest(self.global_theta).into());
            map.insert("local_rope_theta".to_owned(), shortest(self.local_theta).into());
        }
        if lacks(map, "layer_types") {
            match &self.global_layers {
                GlobalLayers::Every(n) => {
                    map.insert("global_attn_every_n_layers".to_owned(), (*n).into());
                }
                GlobalLayers::Listed(list) => {
                    let types = list.iter().map(|global| if *global { GLOBAL } else { LOCAL });
                    map.insert("layer_types".to_owned(), types.collect());
                }
            }
        }
    }
}

/// Reads the bases of the older form. A null `local_rope_theta` means the base of global layers.
fn old_thetas(keys: &mut Keys<'_>, default: &Rotary) -> Result<[f32; 2], Error> {
    let mut theta = |key: &'static str, default: f32, if_null: Option<f32>| match (
        keys.map.remove(key),
        if_null,
    ) {
        (None, _) => Ok(default),
        (Some(Value::Null), Some(value)) => Ok(value),
        (Some(value), _) => {
            checked_theta(&value).ok_or_else(|| keys.wrong(key, Some(&value), THETA))
        }
    };
    let global = theta("global_rope_theta", default.global_theta, None)?;
    Ok([global, theta("local_rope_theta", default.local_theta, Some(global))?])
}

fn checked_theta(value: &Value) -> Option<f32> {
    #[expect(clippy::cast_possible_truncation, reason = "the precision of the engine")]
    let theta = value.as_f64()? as f32;
    (1.0..1e30).contains(&theta).then_some(theta)
}

/// Reads the base of a kind of layers from `rope_parameters`, or returns `default` if it is not given there.
fn theta_of(keys: &Keys<'_>, parameters: &Value, kind: &str, default: f32) -> Result<f32, Error> {
    let own = match (parameters, parameters.get(kind)) {
        (Value::Object(_), Some(own @ Value::Object(_))) => own,
        (Value::Object(map), None | Some(Value::Null)) if !map.contains_key("rope_theta") => {
            return Ok(default);
        }
        _ => {
            let expected = format!("an object with `{GLOBAL}` and `{LOCAL}`");
            return Err(keys.wrong("rope_parameters", Some(parameters), expected));
        }
    };
    let is_default = own.get("rope_type").is_none_or(|found| *found == json!("default"));
    let theta = own.get("rope_theta").map_or(Some(default), checked_theta);
    theta.filter(|_| is_default).ok_or_else(|| {
        let expected = format!("`rope_type` \"default\" and `rope_theta` {THETA}");
        keys.wrong("rope_parameters", Some(own), expected)
    })
}

fn listed_layers(keys: &Keys<'_>, types: &Value, n_layers: usize) -> Result<Vec<bool>, Error> {
    let is_global = |value: &Value| match value.as_str() {
        Some(GLOBAL) => Some(true),
        Some(LOCAL) => Some(false),
        _ => None,
    };
    let list: Option<Vec<_>> =
        types.as_array().and_then(|types| types.iter().map(is_global).collect());
    list.filter(|list| list.len() == n_layers).ok_or_else(|| {
        let expected = format!("a list of `{GLOBAL}` or `{LOCAL}` for each of {n_layers} layers");
        keys.wrong("layer_types", Some(types), expected)
    })
}
