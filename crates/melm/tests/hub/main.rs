//! Tests of finding models: in a folder, in the cache, on a local hub that fails in many ways, and without a network.
#![cfg(feature = "hub")]
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod faults;
mod fetching;
mod server;
mod support;
