//! Masked entity language modelling: more labelled sentences from few.

pub mod error;
pub mod pieces;

pub use error::Error;
