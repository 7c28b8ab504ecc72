//! Tests of the training loop and the tagger with a tiny random model.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod file;
mod folder;
mod gpu;
mod long;
mod read;
mod resume;
mod support;
