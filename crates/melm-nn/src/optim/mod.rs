//! Changing parameters by their gradients.

mod adam;
mod schedule;

pub use adam::{Adam, AdamSettings, Report};
pub use schedule::Schedule;
