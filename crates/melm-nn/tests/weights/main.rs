//! Model folders: read as Hugging Face reads them, and refused when they are damaged.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

mod folder;
mod golden;
mod hostile;
