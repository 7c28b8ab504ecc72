//! The embedded model: mini, a masked language model of English, German, Spanish and Dutch, as bytes of the program.
//!
//! Data only, so that the program works from any folder, without a network and without a path. Only the front doors
//! link it, behind their feature `embedded`. [`CARD`] says what it is, what it was trained on and how good it is;
//! `model/*.py` made it. The weights are under Apache-2.0, see `LICENSE`.

/// `config.json`.
pub const CONFIG: &str = include_str!("../model/config.json");

/// `tokenizer.json`.
pub static TOKENIZER: &str = include_str!("../model/tokenizer.json");

/// `tokenizer_config.json`, for Python's sake when a fine-tuned model is saved.
pub const TOKENIZER_CONFIG: &str = include_str!("../model/tokenizer_config.json");

/// `special_tokens_map.json`, for older Python's sake.
pub const SPECIAL_TOKENS_MAP: &str = include_str!("../model/special_tokens_map.json");

/// `model.safetensors`: matrices as int8 with one f32 scale a row, the rest f16.
pub static WEIGHTS: &[u8] = include_bytes!("../model/model.safetensors");

/// The model card.
pub const CARD: &str = include_str!("../model/README.md");
