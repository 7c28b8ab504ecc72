//! The whole method: from labelled sentences to more labelled sentences.

mod algorithm;
mod builder;
mod estimate;
mod folder;
mod job;
mod method;
mod result;
mod rounds;
mod sources;
mod summary;

pub use algorithm::{Backbones, Drafts, Gold, augment, generate, judge_again};
pub use builder::Augment;
pub use estimate::{Estimate, StageEstimate};
pub use folder::{AugmentFolder, AugmentOutcome, FinishedRun};
pub use job::AugmentJob;
pub use method::{Augmenter, Melm, Method, Prepared, Tuned, prepare, tune};
pub use result::Augmented;
pub use sources::Sources;
pub use summary::DraftSummary;
