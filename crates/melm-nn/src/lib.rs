//! The tensor engine: XLM-R forward and backward over packed rows.

pub mod buffer;
pub mod ceiling;
pub mod config;
pub mod device;
pub mod dropout;
pub mod encoder;
pub mod error;
pub mod gradients;
pub mod isa;
mod math;
pub mod mlm;
mod ops;
pub mod optim;
pub mod packed;
pub mod params;
mod pool;
mod product;
mod split;
mod table;
pub mod weights;

pub use error::Error;
