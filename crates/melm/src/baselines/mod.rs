//! What the paper compares with.

mod daga;
mod substitute;

pub use daga::{Daga, DagaSettings, Unknown};
pub(crate) use substitute::substituted;
pub use substitute::{Substitute, SubstituteSettings};
