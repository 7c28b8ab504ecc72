//! Code-mixing, held against the words of the paper (section 2.5).
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod drafts;
mod linearize;
mod support;
mod vectors;
