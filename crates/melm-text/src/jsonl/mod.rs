//! JSON lines as Hugging Face `datasets` writes NER: one object a line with `tokens` and
//! `ner_tags`, the tags as strings or as ids into a list of names.
//!
//! Every other key is kept as it was written.

mod names;
mod reader;
mod writer;

pub use names::{TagNames, find_names_beside, parse_names};
pub use reader::{JsonlKeys, JsonlReader};
pub(crate) use reader::{TAGS_KEYS, TOKENS_KEYS};
pub use writer::JsonlWriter;
