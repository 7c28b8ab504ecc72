//! The `[tagger]` section of a plan.

use melm_nn::tagger as nn;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::TagSet;
use crate::training::TrainingSettings;

/// The layer on top of the encoder.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum TaggerHead {
    /// A softmax over the tags of each token.
    Linear,
    /// A linear-chain CRF over the sentence, as in the paper.
    Crf,
}

/// The architecture and the training of a tagger.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TaggerSettings {
    /// The layer on top of the encoder: `"crf"` or `"linear"`.
    pub head: TaggerHead,
    /// If true, only tag sequences that are valid in the scheme can be predicted.
    pub constrained: bool,
    /// The settings of the training.
    #[serde(flatten)]
    pub training: TrainingSettings,
}

impl TaggerSettings {
    pub(super) fn to_engine(&self, tags: &TagSet) -> nn::TaggerSettings {
        let kind = match self.head {
            TaggerHead::Linear => nn::HeadKind::Linear,
            TaggerHead::Crf => nn::HeadKind::Crf,
        };
        let allowed = self.constrained.then(|| tags.allowed());
        nn::TaggerSettings { n_tags: tags.len(), kind, allowed }
    }
}
