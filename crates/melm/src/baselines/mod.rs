//! What the paper compares with.

mod replace_tokens;
mod substitute;

pub use replace_tokens::ReplaceTokens;
pub(crate) use replace_tokens::swapped;
pub(crate) use substitute::substituted;
pub use substitute::{Substitute, SubstituteSettings};
