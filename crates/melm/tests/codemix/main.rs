//! Tests of code-mixing against section 2.5 of the paper.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod drafts;
mod linearize;
mod support;
mod vectors;
