//! Tests of the methods that write whole sentences.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod daga;
mod mulda;
mod support;
