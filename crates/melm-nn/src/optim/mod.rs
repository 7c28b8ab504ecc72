//! The optimiser Adam and the schedules of its learning rate.

mod adam;
mod schedule;

pub(crate) use adam::Rule;
pub use adam::{Adam, AdamSettings};
pub use schedule::Schedule;
