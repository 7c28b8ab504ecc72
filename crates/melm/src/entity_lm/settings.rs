//! The `[markers]` and `[finetune]` sections of a plan.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::markers::{RelatedWords, RowStart};
use crate::mask::TrainingMask;
use crate::training::TrainingSettings;

/// The `[markers]` section: the markers around entity tokens (section 2.1).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct MarkerSettings {
    /// If true, markers are written around entity tokens. If false, the method is the paper's "MELM w/o linearize".
    pub linearize: bool,
    /// How the embedding rows of the markers are initialised: `"related-words"`, `"mentions"`,
    /// `"related-and-mentions"`, `"random"` or `"related-added"`.
    pub start: RowStart,
    /// If true, the embedding rows of the markers are trained, even if `finetune.freeze` names the table that contains
    /// them. If false, they stay as they were initialised when the table is frozen.
    pub train: bool,
    /// The related words of entity types, such as `PER = ["person"]`, all of which are used. For other types they are
    /// derived from the name of the type, and only short ones are used.
    pub words: RelatedWords,
}

/// The `[finetune]` section: fine-tuning of the masked language model (section 2.2).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FinetuneSettings {
    /// How positions are masked.
    pub mask: TrainingMask,
    /// The settings of the training loop.
    #[serde(flatten)]
    pub training: TrainingSettings,
}
