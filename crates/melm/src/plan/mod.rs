//! The plan: all settings of a run, as one type and one TOML file.
//!
//! A preset is a complete plan. A file, `--set` and flags change single keys of its table. The table is then
//! converted to a [`Plan`] and checked. A run saves its complete plan, so that it can be repeated.

mod builder;
mod family_rates;
mod model_class;
mod presets;
pub mod reference;
mod table;
#[cfg(test)]
mod tests;

pub use builder::PlanBuilder;
pub use model_class::{ModelClass, ModelClasses, ModelSize};
pub use presets::Preset;
pub use table::{PlanTable, describe_toml};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Error;
use crate::codemix::{CodemixSettings, VectorKind};
use crate::entity_lm::{FinetuneSettings, MarkerSettings};
use crate::generate::GenerateSettings;
use crate::gold_check::GoldCheckSettings;
use crate::judge::{FilterMode, FilterSettings};
use crate::methods::Method;
use crate::methods::{DagaSettings, MuldaSettings, SubstituteSettings};
use crate::names::NamesSettings;
use crate::pick::PickSettings;
use crate::self_training::{SelfTrainingSettings, SilverSettings};
use crate::tagger::TaggerSettings;

/// The version of the plan's keys. Plans with another version are refused.
pub(crate) const VERSION: u32 = 1;

/// All settings of a run. The fields are the keys and sections of the TOML file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Plan {
    /// The version of the keys. There is one version so far: 1.
    #[schemars(range(min = 1, max = 1))]
    pub version: u32,
    /// The seed of all random streams.
    pub seed: u64,
    /// The method that makes drafts.
    pub method: Method,
    /// If true, the augmented set is gold followed by the kept drafts (Algorithm 1). If false, it is the kept drafts
    /// alone.
    pub union: bool,
    /// The pretrained models.
    pub model: ModelNames,
    /// The markers around entity tokens (section 2.1).
    pub markers: MarkerSettings,
    /// The fine-tuning of the masked language model (section 2.2).
    pub finetune: FinetuneSettings,
    /// The generation of drafts (section 2.3).
    pub generate: GenerateSettings,
    /// The replacement of mentions by the method `label-wise`, and of tokens by `lwtr`.
    pub substitute: SubstituteSettings,
    /// Lists of names.
    #[serde(default)]
    pub names: NamesSettings,
    /// The language model of the method `daga`.
    pub daga: DagaSettings,
    /// The encoder-decoder of the method `mulda`.
    pub mulda: MuldaSettings,
    /// Code-mixing of sentences in several languages (section 2.5).
    pub codemix: CodemixSettings,
    /// The filter that decides which drafts are kept (section 2.4).
    pub filter: FilterSettings,
    /// The labelling of unlabelled text by a panel of taggers.
    pub self_training: SelfTrainingSettings,
    /// Sentences that somebody else labelled (`--silver`).
    #[serde(default)]
    pub silver: SilverSettings,
    /// The choice of sentences to label next (`melm pick`).
    #[serde(default)]
    pub pick: PickSettings,
    /// The check of gold by taggers that were not trained on the sentence they read.
    #[serde(default)]
    pub gold_check: GoldCheckSettings,
    /// The tagger: the judge of the filter, and the model that `melm train` trains.
    pub tagger: TaggerSettings,
}

/// The pretrained models: folders, names on the Hugging Face hub, or `mini`, the embedded model.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ModelNames {
    /// The masked language model that is fine-tuned to generate entities.
    pub masked_lm: String,
    /// The encoder of the tagger.
    pub tagger: String,
    /// The mBART or mBART-50 that the method `mulda` fine-tunes. If empty, a new model is trained.
    pub seq2seq: String,
}

impl Plan {
    /// Returns the marker settings for the plan's method. Methods that do not linearize get no markers, whatever the
    /// settings are.
    pub fn marker_settings(&self) -> MarkerSettings {
        let linearize = self.markers.linearize && self.method.linearizes();
        MarkerSettings { linearize, ..self.markers.clone() }
    }

    /// Returns true if the masked language model is needed: to predict pieces, for its embeddings, or for its
    /// tokenizer. `MulDA` uses the tokenizer if it has no pretrained model.
    pub fn needs_masked_lm(&self) -> bool {
        let by_pieces = self.codemix.vectors == VectorKind::Pieces;
        let has_own = self.method == Method::Mulda && !self.model.seq2seq.is_empty();
        (self.method.reads_masked_lm() && !has_own) || (self.method.has_vectors() && by_pieces)
    }

    /// Returns true if drafts are judged: the filter is on, and the method makes drafts.
    pub fn has_judge(&self) -> bool {
        self.filter.mode != FilterMode::Off && self.method != Method::Gold
    }

    /// Fails if the version or a value is not valid. `place` is the origin of the last edit, for error messages.
    fn check(&self, place: &str) -> Result<(), Error> {
        let invalid = |key: &str, expected: &str| Error::Setting {
            place: place.to_owned(),
            message: format!("`{key}` must be {expected}"),
        };
        if self.version != VERSION {
            return Err(invalid("version", "1"));
        }
        for (section, training) in
            [("finetune", &self.finetune.training), ("tagger", &self.tagger.training)]
        {
            if let Some((key, expected)) = training.first_invalid() {
                return Err(invalid(&format!("{section}.{key}"), expected));
            }
        }
        for (section, found) in [
            ("generate", self.generate.first_invalid()),
            ("filter", self.filter.first_invalid()),
            ("daga", self.daga.first_invalid()),
            ("mulda", self.mulda.first_invalid()),
            ("self_training", self.self_training.first_invalid()),
            ("gold_check", self.gold_check.first_invalid()),
        ] {
            if let Some((key, expected)) = found {
                return Err(invalid(&format!("{section}.{key}"), &expected));
            }
        }
        Ok(())
    }
}

/// Checks entries `(key, value, limit)`. Returns the first key whose value is above its limit, and a description of
/// the allowed values.
///
/// The sizes are checked before they are used, because the size of a model in memory depends on them.
pub(crate) fn check_limits(
    sizes: &[(&'static str, usize, usize)],
) -> Option<(&'static str, String)> {
    let (key, value, limit) = sizes.iter().find(|(_, value, limit)| value > limit)?;
    Some((key, format!("at most {limit}, but is {value}")))
}
