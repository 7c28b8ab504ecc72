//! The embedded model `mini`: a masked language model for English, German, Spanish and Dutch, as part of the program.
//!
//! This crate contains only data. It lets the program run from any folder and without a network. [`CARD`] describes the
//! model, its training data and its quality. The scripts `model/*.py` built the model. The weights are licensed under
//! Apache-2.0; see `LICENSE`.

/// The file `config.json` of the model.
pub const CONFIG: &str = include_str!("../model/config.json");

/// The file `tokenizer.json` of the model.
pub static TOKENIZER: &str = include_str!("../model/tokenizer.json");

/// The file `tokenizer_config.json`, which transformers needs to open a saved fine-tuned model.
pub const TOKENIZER_CONFIG: &str = include_str!("../model/tokenizer_config.json");

/// The file `special_tokens_map.json`, which older versions of transformers need.
pub const SPECIAL_TOKENS_MAP: &str = include_str!("../model/special_tokens_map.json");

/// The file `model.safetensors`: matrices as int8 with one f32 scale per row, all other tensors as f16. `None` in the
/// package of the Rust registry, which is limited to 10 MB.
#[cfg(has_weights)]
pub static WEIGHTS: Option<&[u8]> = Some(include_bytes!("../model/model.safetensors"));

/// No weights: this is the package of the Rust registry, which is limited to 10 MB.
#[cfg(not(has_weights))]
pub static WEIGHTS: Option<&[u8]> = None;

/// The model card.
pub const CARD: &str = include_str!("../model/README.md");
