//! The training loop and the tagger, on a tiny model drawn at random.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod folder;
mod long;
mod resume;
mod support;
