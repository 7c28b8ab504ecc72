//! Tests of finding models: in a folder, in the cache, on a local hub, and without a network.
#![cfg(feature = "hub")]
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod fetching;
mod server;
