//! The stages of the method compared with the paper's text, and the guarantee that labels never shift.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

mod edges;
mod generate;
mod guesses;
mod linearize;
mod markers;
mod mask;
mod support;
