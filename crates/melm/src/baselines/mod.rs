//! What the paper compares with.

mod daga;
mod mulda;
mod substitute;

pub use daga::{Daga, DagaSettings, Unknown};
pub use mulda::{Mulda, MuldaModel, MuldaSettings, NO_PRETRAINING, PretrainedSeq2Seq};
pub(crate) use substitute::substituted;
pub use substitute::{Substitute, SubstituteSettings};
