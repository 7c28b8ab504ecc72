//! The baselines of the paper, and mention replacement and token replacement as methods of their own.

mod daga;
mod mulda;
mod replace_tokens;
mod substitute;

pub(crate) use daga::Daga;
pub use daga::{DagaSettings, UnknownTokens};
pub(crate) use mulda::{Mulda, MuldaModel};
pub use mulda::{MuldaSettings, NO_PRETRAINING, PretrainedSeq2Seq};
pub(crate) use replace_tokens::{ReplaceTokens, swap_tokens};
pub(crate) use substitute::Substitute;
pub use substitute::{SubstituteSettings, substitute_mentions};
