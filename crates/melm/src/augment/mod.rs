//! The whole method: from labelled sentences to more labelled sentences.

mod algorithm;
mod method;
mod rounds;
mod sources;
mod summary;

pub use algorithm::{Backbones, Drafts, Gold, augment, generate, judge_again};
pub use method::{Augmenter, Melm, Method, Prepared, Tuned, prepare, tune};
pub use sources::Sources;
pub use summary::DraftSummary;
