//! The embedded model `mini`: a masked language model for English, German, Spanish and Dutch, compiled into the program.
//!
//! This crate contains only data. It lets the program run from any folder and without a network. [`CARD`] describes the
//! model, its training data and its quality. The scripts `model/*.py` made it. The licence of the weights is Apache-2.0,
//! see `LICENSE`.

/// `config.json`.
pub const CONFIG: &str = include_str!("../model/config.json");

/// `tokenizer.json`.
pub static TOKENIZER: &str = include_str!("../model/tokenizer.json");

/// `tokenizer_config.json`. Python needs it to open a saved fine-tuned model.
pub const TOKENIZER_CONFIG: &str = include_str!("../model/tokenizer_config.json");

/// `special_tokens_map.json`. Older Python versions need it.
pub const SPECIAL_TOKENS_MAP: &str = include_str!("../model/special_tokens_map.json");

/// `model.safetensors`: matrices as int8 with one f32 scale for each row, everything else as f16.
pub static WEIGHTS: &[u8] = include_bytes!("../model/model.safetensors");

/// The model card.
pub const CARD: &str = include_str!("../model/README.md");
