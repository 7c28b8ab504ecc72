//! Linear maps in 8-bit integers, for inference on the CPU.
//!
//! The weights of each output are scaled to the integers from -127 to 127 when a model is loaded. The numbers of each row
//! of activations are scaled to the integers from 0 to 255 at run time, so that a result does not depend on the other
//! rows of a batch. Products are summed exactly in `i32`. Every instruction set and every number of threads therefore
//! gives the same bits.

#[cfg(target_arch = "x86_64")]
mod avx2;
mod kernel;
mod linear;
mod rows;
#[cfg(target_arch = "x86_64")]
mod vnni;

pub(crate) use kernel::Kernel;
pub(crate) use linear::{Finish, Int8Linear};
pub(crate) use rows::QuantizedRows;

#[cfg(test)]
mod tests;
