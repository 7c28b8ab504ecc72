//! The method: from labelled sentences to more labelled sentences.
//!
//! So far the crate holds what every stage needs: named random streams ([`run`]), the draw of a
//! low-resource training set ([`sample`]), tokens cut into pieces with their alignment
//! ([`pieces`]), and models found by name ([`hub`]).

pub mod draft;
pub mod error;
pub mod generate;
pub mod hub;
pub mod linearize;
pub mod markers;
pub mod mask;
pub mod pieces;
mod related;
pub mod run;
pub mod sample;
pub mod windows;

pub use error::Error;
