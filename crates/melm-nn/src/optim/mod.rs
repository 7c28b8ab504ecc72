//! The Adam optimiser and schedules of the learning rate.

mod adam;
mod schedule;

pub(crate) use adam::AdamFactors;
pub use adam::{Adam, AdamSettings};
pub use schedule::Schedule;
