//! The Adam optimiser and schedules of the learning rate.

mod adam;
mod moments;
mod schedule;

pub(crate) use adam::AdamFactors;
pub use adam::{Adam, AdamSettings};
pub(crate) use moments::MomentLayout;
pub use schedule::Schedule;
