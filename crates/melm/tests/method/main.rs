//! Compares the stages of the method with the text of the paper, and tests that tags always fit their tokens.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

mod edges;
mod finetune;
mod generate;
mod guesses;
mod linearize;
mod markers;
mod mask;
mod support;
