//! Checks that model folders are read as Hugging Face reads them, and that damaged folders are refused.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod folder;
mod golden;
mod hostile;
