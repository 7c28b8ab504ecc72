//! Model folders: the Hugging Face layout, read by memory map and written without a second copy.
//!
//! [`Checkpoint`] opens `config.json` with `model.safetensors` (or its shards) and hands out tensors as f32,
//! whatever they are stored in: F32, F16, BF16, or our int8 form (`NAME` as I8 with `NAME.scale`, one f32 a row).
//! [`save`] writes what Python's `from_pretrained` opens. Files come from strangers: every claim of a header is
//! checked before it is used.
//!
//! Names are those of `XLMRobertaForMaskedLM`, always with the `roberta.` prefix; what older or bare encoders call
//! them is resolved here and nowhere else.

mod checkpoint;
pub(crate) mod convert;
mod names;
mod save;
pub(crate) mod shards;
mod state;

pub use checkpoint::Checkpoint;
pub use names::{ModelPart, TensorShape, tensor_shapes};
pub(crate) use save::save_folder;
pub use save::{Tensor, save};
pub use state::ParameterSnapshot;
