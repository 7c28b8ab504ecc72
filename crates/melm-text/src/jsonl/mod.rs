//! JSON lines as Hugging Face `datasets` writes NER data: one object on each line with `tokens` and
//! `ner_tags`. Tags are strings, or ids into a list of names.
//!
//! Other keys do not change.

mod names;
mod reader;
mod writer;

pub use names::{TagNames, find_names_beside, format_names, parse_names};
pub use reader::{JsonlKeys, JsonlReader, has_text_only};
pub(crate) use reader::{TAGS_KEYS, TOKENS_KEYS, find_value, parse_fields, parse_tokens};
pub use writer::JsonlWriter;
