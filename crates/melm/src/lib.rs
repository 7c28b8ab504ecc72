//! Masked entity language modelling: more labelled sentences from few.

pub mod error;
pub mod hub;
pub mod pieces;

pub use error::Error;
