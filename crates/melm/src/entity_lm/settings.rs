//! The `[markers]` and `[finetune]` sections of a plan.

use serde::{Deserialize, Serialize};

use crate::markers::{RelatedWords, RowStart};
use crate::mask::TrainingMask;
use crate::training::TrainingSettings;

/// What stands around entity tokens (section 2.1).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MarkerSettings {
    /// Whether markers are written at all; without them it is the paper's "MELM w/o linearize".
    pub linearize: bool,
    /// Where their rows start: `"related-words"`, `"random"` or `"related-added"`.
    pub start: RowStart,
    /// Words that a type's markers start from, as `PER = ["person"]`; guessed from the type's name where not given.
    pub words: RelatedWords,
}

/// How the masked language model is fine-tuned (section 2.2).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FinetuneSettings {
    /// What is masked.
    pub mask: TrainingMask,
    /// How it is trained.
    #[serde(flatten)]
    pub training: TrainingSettings,
}
