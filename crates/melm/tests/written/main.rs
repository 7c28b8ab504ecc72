//! Methods that write sentences from nothing.
#![expect(clippy::unwrap_used, reason = "a test")]

mod daga;
mod mulda;
mod support;
