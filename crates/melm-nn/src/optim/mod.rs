//! Changing parameters by their gradients.

mod adam;
mod schedule;

pub(crate) use adam::Rule;
pub use adam::{Adam, AdamSettings};
pub use schedule::Schedule;
