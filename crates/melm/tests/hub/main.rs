//! Models by name: from a folder, from the cache, from a hub on this machine, and without any.
#![cfg(feature = "hub")]
#![expect(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

mod fetching;
mod server;
