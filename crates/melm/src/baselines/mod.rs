//! The baselines of the paper, and mention replacement and token replacement as methods of their own.

mod daga;
mod mulda;
mod replace_tokens;
mod substitute;

pub use daga::{Daga, DagaSettings, UnknownTokens};
pub use mulda::{Mulda, MuldaModel, MuldaSettings, NO_PRETRAINING, PretrainedSeq2Seq};
pub use replace_tokens::ReplaceTokens;
pub(crate) use replace_tokens::swapped;
pub use substitute::{Substitute, SubstituteSettings, substituted};
