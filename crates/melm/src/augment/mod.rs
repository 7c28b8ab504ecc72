//! The whole method: from labelled sentences to more labelled sentences.

mod algorithm;
mod builder;
mod cost;
mod estimate;
mod folder;
mod harvest;
mod job;
mod notes;
mod panel_cost;
mod result;
mod rounds;
mod silver;
mod summary;
mod text;

pub use crate::run_folder::FinishedRun;
pub use algorithm::{Backbones, Drafts, Gold, augment, generate, judge_again};
pub use builder::Augment;
pub use estimate::{Estimate, StageEstimate};
pub use folder::{AugmentFolder, AugmentOutcome, Voting};
pub use job::AugmentJob;
pub(crate) use panel_cost::PanelWork;
pub use result::Augmented;
pub use silver::{Silver, SilverError, SilverOutcome};
pub use summary::DraftSummary;
pub use text::TextOutcome;
pub(crate) use text::TextToLabel;
