//! Reads and writes model folders in the Hugging Face layout. Files are read by memory map, and written without a
//! second copy in memory.
//!
//! [`Checkpoint`] opens `config.json` and `model.safetensors` (or its shards) and returns tensors as f32. They may be
//! stored as F32, F16 or BF16, or as int8: a tensor `NAME` of type I8, and a tensor `NAME.scale` with one f32 for each
//! row. [`save()`] writes a folder that Python's `from_pretrained` can open. Files are not trusted: every value of a
//! header is checked before it is used.
//!
//! Tensors have the names of `XLMRobertaForMaskedLM`, always with the prefix `roberta.`. The different names in older
//! checkpoints and in checkpoints of a bare encoder are translated.

mod checkpoint;
pub(crate) mod convert;
mod names;
mod save;
pub(crate) mod shards;
mod state;

pub use checkpoint::Checkpoint;
pub use names::ModelPart;
pub(crate) use names::{TensorShape, tagger_transform_shapes, tensor_shapes};
pub(crate) use save::save_folder;
pub use save::{Tensor, save};
pub use state::{ParameterSnapshot, read_note};
