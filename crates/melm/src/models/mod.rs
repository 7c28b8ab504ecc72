//! Pretrained models: the embedded one, folders, and names on the Hugging Face hub.

mod pretrained;
mod store;

pub(crate) use pretrained::weight_files;
pub use pretrained::{EmbeddedFiles, Pretrained};
pub use store::{MINI, ModelStore, NeededModels};
