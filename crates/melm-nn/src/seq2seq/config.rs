//! The configuration of an mBART, as in Hugging Face's `config.json`.

use crate::config::{Keys, LARGEST_SIZE, MOST_LAYERS, RATE, is_rate, shortest};
use crate::error::Error;
use crate::weights::TensorShape;
use serde_json::{Value, json};
use std::path::Path;

/// The name of the embedding table that encoder, decoder and output layer share.
pub const SHARED: &str = "model.shared.weight";
/// The number of unused rows at the start of the position table.
pub(super) const FIRST_POSITION: usize = 2;

/// The sizes of the encoder or of the decoder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StackConfig {
    /// The number of layers.
    pub n_layers: usize,
    /// The number of attention heads, a divisor of the width.
    pub n_heads: usize,
    /// The inner width of the feed-forward layers.
    pub inner: usize,
}

/// The sizes, dropout rates and special pieces of an mBART.
#[derive(Clone, Debug, PartialEq)]
pub struct Seq2SeqConfig {
    /// The number of rows of the shared embedding table.
    pub vocab_size: usize,
    /// The width of a hidden row.
    pub width: usize,
    /// The sizes of the encoder, which reads the source.
    pub encoder: StackConfig,
    /// The sizes of the decoder, which generates the target.
    pub decoder: StackConfig,
    /// The largest number of pieces in a source or a target.
    pub max_pieces: usize,
    /// The dropout rate on hidden rows, in `[0, 1)`.
    pub dropout: f32,
    /// The dropout rate on attention probabilities, in `[0, 1)`.
    pub attention_dropout: f32,
    /// If true, embedded pieces are multiplied by the square root of the width.
    pub scales_embedding: bool,
    /// The standard deviation of newly initialised weights.
    pub init_std: f32,
    /// The id of the padding piece. Its embedding gets no gradient.
    pub pad_id: u32,
    /// The id of the piece that ends a target.
    pub eos_id: u32,
}

impl Seq2SeqConfig {
    /// Parses the text of a `config.json`. `path` is used in error messages.
    ///
    /// # Errors
    /// Fails if the text is not JSON, if a value is missing or out of range, or if the architecture is not supported.
    pub fn parse(path: &Path, text: &str) -> Result<Self, Error> {
        let map = serde_json::from_str(text)
            .map_err(|source| Error::Json { path: path.to_path_buf(), source })?;
        let mut keys = Keys { path, map };
        check_architecture(&keys)?;
        let stack = |keys: &mut Keys<'_>, names: [&'static str; 3]| -> Result<_, Error> {
            let [layers, heads, inner] = names;
            Ok(StackConfig {
                n_layers: keys.size(layers, MOST_LAYERS)?,
                n_heads: keys.size(heads, LARGEST_SIZE)?,
                inner: keys.size(inner, LARGEST_SIZE)?,
            })
        };
        let config = Self {
            vocab_size: keys.size("vocab_size", LARGEST_SIZE)?,
            width: keys.size("d_model", LARGEST_SIZE)?,
            encoder: stack(&mut keys, ENCODER)?,
            decoder: stack(&mut keys, DECODER)?,
            max_pieces: keys.size("max_position_embeddings", LARGEST_SIZE)?,
            dropout: keys.number("dropout", 0.1, RATE, is_rate)?,
            attention_dropout: keys.number("attention_dropout", 0.0, RATE, is_rate)?,
            scales_embedding: keys.map.get("scale_embedding") == Some(&Value::Bool(true)),
            init_std: keys.number("init_std", 0.02, "a positive number", |v| v > 0.0)?,
            pad_id: piece(&keys, "pad_token_id", 1)?,
            eos_id: piece(&keys, "eos_token_id", 2)?,
        };
        for (key, heads) in
            [(ENCODER[1], config.encoder.n_heads), (DECODER[1], config.decoder.n_heads)]
        {
            if !config.width.is_multiple_of(heads) {
                let expected = format!("a divisor of `d_model` {}", config.width);
                return Err(keys.wrong(key, Some(&json!(heads)), expected));
            }
        }
        Ok(config)
    }

    /// Fails if the encoder or decoder has more layers than any real model, so that the list of tensors stays short.
    pub(super) fn check_limits(&self) -> Result<(), Error> {
        for (key, stack) in [(ENCODER[0], self.encoder), (DECODER[0], self.decoder)] {
            Error::check_limit(key, stack.n_layers, MOST_LAYERS)?;
        }
        Ok(())
    }

    /// Returns the text of a `config.json` that `from_pretrained` can open.
    pub(super) fn to_json(&self) -> String {
        let map = json!({
            "model_type": "mbart",
            "architectures": ["MBartForConditionalGeneration"],
            "vocab_size": self.vocab_size,
            "d_model": self.width,
            (ENCODER[0]): self.encoder.n_layers,
            (ENCODER[1]): self.encoder.n_heads,
            (ENCODER[2]): self.encoder.inner,
            (DECODER[0]): self.decoder.n_layers,
            (DECODER[1]): self.decoder.n_heads,
            (DECODER[2]): self.decoder.inner,
            "max_position_embeddings": self.max_pieces,
            "dropout": shortest(self.dropout),
            "attention_dropout": shortest(self.attention_dropout),
            "activation_function": "gelu",
            "activation_dropout": 0.0,
            "scale_embedding": self.scales_embedding,
            "init_std": shortest(self.init_std),
            "pad_token_id": self.pad_id,
            "eos_token_id": self.eos_id,
            "is_encoder_decoder": true,
            "tie_word_embeddings": true,
            "dtype": "float32",
        });
        format!("{map:#}\n")
    }

    /// Returns the names and shapes of all trained tensors. The shared table is the last one.
    pub(super) fn tensors(&self) -> Vec<TensorShape> {
        let mut list = Vec::new();
        let mut add = |name: String, shape: &[usize]| {
            list.push(TensorShape::new(name, shape));
        };
        let width = self.width;
        for (stack, config, attentions) in [
            ("encoder", self.encoder, &["self_attn"][..]),
            ("decoder", self.decoder, &["self_attn", "encoder_attn"][..]),
        ] {
            let positions = self.max_pieces.saturating_add(FIRST_POSITION);
            add(format!("model.{stack}.embed_positions.weight"), &[positions, width]);
            let mut both = |name: String, outputs: usize, inputs: Option<usize>| {
                let shape: Vec<_> = std::iter::once(outputs).chain(inputs).collect();
                add(format!("{name}.weight"), &shape);
                add(format!("{name}.bias"), &[outputs]);
            };
            both(format!("model.{stack}.layernorm_embedding"), width, None);
            for layer in 0..config.n_layers {
                let layer = format!("model.{stack}.layers.{layer}");
                for attention in attentions {
                    for part in ["q_proj", "k_proj", "v_proj", "out_proj"] {
                        both(format!("{layer}.{attention}.{part}"), width, Some(width));
                    }
                    both(format!("{layer}.{attention}_layer_norm"), width, None);
                }
                both(format!("{layer}.fc1"), config.inner, Some(width));
                both(format!("{layer}.fc2"), width, Some(config.inner));
                both(format!("{layer}.final_layer_norm"), width, None);
            }
            both(format!("model.{stack}.layer_norm"), width, None);
        }
        add(SHARED.to_owned(), &[self.vocab_size, width]);
        list
    }
}

const ENCODER: [&str; 3] = ["encoder_layers", "encoder_attention_heads", "encoder_ffn_dim"];
const DECODER: [&str; 3] = ["decoder_layers", "decoder_attention_heads", "decoder_ffn_dim"];

fn piece(keys: &Keys<'_>, key: &'static str, default: u32) -> Result<u32, Error> {
    let Some(found) = keys.map.get(key).filter(|value| !value.is_null()) else {
        return Ok(default);
    };
    let id = found.as_u64().and_then(|id| u32::try_from(id).ok());
    id.ok_or_else(|| keys.wrong(key, Some(found), "the id of a piece"))
}

/// Fails if the configuration describes an architecture that is not supported. A missing key means the default.
fn check_architecture(keys: &Keys<'_>) -> Result<(), Error> {
    if keys.map.get("model_type") != Some(&json!("mbart")) {
        let expected = "`mbart`; no other encoder-decoder is supported";
        return Err(keys.wrong("model_type", keys.map.get("model_type"), expected));
    }
    let supported = [
        ("activation_function", json!("gelu")),
        ("activation_dropout", json!(0.0)),
        ("encoder_layerdrop", json!(0.0)),
        ("decoder_layerdrop", json!(0.0)),
        ("tie_word_embeddings", json!(true)),
    ];
    for (key, expected) in supported {
        let found = keys.map.get(key).filter(|found| !found.is_null());
        let is_same = |found: &Value| {
            *found == expected || (found.is_number() && found.as_f64() == expected.as_f64())
        };
        if found.is_some_and(|found| !is_same(found)) {
            return Err(keys.wrong(
                key,
                found,
                format!("`{expected}`; no other value is supported"),
            ));
        }
    }
    Ok(())
}
