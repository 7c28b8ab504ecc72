//! What the paper compares with.

mod substitute;

pub(crate) use substitute::substituted;
pub use substitute::{Substitute, SubstituteSettings};
