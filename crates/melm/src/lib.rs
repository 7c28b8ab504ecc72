//! The method: from labelled sentences to more labelled sentences.
//!
//! Every stage needs named random streams ([`run`]), the draw of a low-resource training set ([`sample`]), tokens cut
//! into pieces with their alignment ([`pieces`]), and models found by name ([`hub`]). The method itself, in the order
//! of the paper: [`markers`] and [`linearize`] (2.1), [`mask`] (2.2, 2.3), [`generate`] (2.3), [`draft`].

pub mod draft;
pub mod error;
pub mod generate;
pub mod hub;
pub mod linearize;
pub mod markers;
pub mod mask;
pub mod pieces;
pub mod rate;
mod related;
pub mod run;
pub mod sample;
pub mod windows;

pub use error::Error;
