//! The `[tagger]` section of a plan.

use melm_nn::tagger as nn;
use serde::{Deserialize, Serialize};

use super::TagSet;
use crate::fit::FitSettings;

/// What sits on the encoder.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Head {
    /// A softmax for each token.
    Linear,
    /// A linear-chain CRF over the sentence, as in the paper.
    Crf,
}

/// How a tagger is made and trained.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TaggerSettings {
    /// What sits on the encoder: `"crf"` or `"linear"`.
    pub head: Head,
    /// Whether only tag sequences that are valid in the scheme can be chosen.
    pub constrained: bool,
    /// How it is trained.
    #[serde(flatten)]
    pub fit: FitSettings,
}

impl TaggerSettings {
    pub(super) fn of_engine(&self, tags: &TagSet) -> nn::TaggerSettings {
        let kind = match self.head {
            Head::Linear => nn::HeadKind::Linear,
            Head::Crf => nn::HeadKind::Crf,
        };
        let allowed = self.constrained.then(|| tags.allowed());
        nn::TaggerSettings { n_tags: tags.len(), kind, allowed }
    }
}
