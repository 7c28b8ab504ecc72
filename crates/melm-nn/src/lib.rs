//! The tensor engine: XLM-R forward and backward over packed rows.

pub mod config;
pub mod error;
pub mod weights;

pub use error::Error;
