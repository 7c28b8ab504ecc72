//! The engine held to what transformers and torch compute; `tools/make_golden_nn.py` made the numbers.
#![expect(clippy::unwrap_used, reason = "a test")]

mod invariants;
mod mini;
mod steps;
mod support;
mod tiny;
