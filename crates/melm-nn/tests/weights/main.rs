//! Model folders: they are read as Hugging Face reads them, and damaged ones are refused.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod folder;
mod golden;
mod hostile;
