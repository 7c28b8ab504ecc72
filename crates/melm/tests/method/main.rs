//! The method's stages against the paper's text, and the promise that no label ever shifts.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

mod edges;
mod generate;
mod guesses;
mod linearize;
mod markers;
mod mask;
mod support;
