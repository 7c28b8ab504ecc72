//! The plan: every setting of a run, in one TOML file, one type, one way in.
//!
//! A preset gives a whole plan; a file, `--set` and flags edit its table key by key; then it is read into [`Plan`] and
//! checked, once. What a run saves is the whole plan again, so that it can be rerun as it was.

mod presets;
mod table;

pub use presets::{ModelSize, ModelSizes, Preset};
pub use table::PlanTable;

use serde::{Deserialize, Serialize};

use crate::Error;
use crate::augment::Method;
use crate::baselines::{DagaSettings, MuldaSettings, SubstituteSettings};
use crate::codemix::{CodemixSettings, VectorKind};
use crate::entity_lm::{FinetuneSettings, MarkerSettings};
use crate::filter::{FilterMode, FilterSettings};
use crate::generate::GenerateSettings;
use crate::tagger::TaggerSettings;

/// The version of the keys below; older plans are migrated.
pub const VERSION: u32 = 1;

/// All settings of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Plan {
    /// The version of these keys.
    pub version: u32,
    /// The seed of everything random.
    pub seed: u64,
    /// How drafts are made.
    pub method: Method,
    /// Whether the augmented set begins with gold (Algorithm 1), or is the kept drafts alone.
    pub union: bool,
    /// The pretrained models.
    pub model: ModelNames,
    /// What stands around entity tokens (section 2.1).
    pub markers: MarkerSettings,
    /// How the masked language model is fine-tuned (section 2.2).
    pub finetune: FinetuneSettings,
    /// How drafts are generated (section 2.3).
    pub generate: GenerateSettings,
    /// How mentions are replaced by the method `label-wise`, and tokens by `lwtr`.
    pub substitute: SubstituteSettings,
    /// The language model of the method `daga`.
    pub daga: DagaSettings,
    /// The encoder-decoder of the method `mulda`.
    pub mulda: MuldaSettings,
    /// How sentences of several languages are code-mixed (section 2.5).
    pub codemix: CodemixSettings,
    /// Which drafts are kept (section 2.4).
    pub filter: FilterSettings,
    /// The tagger: judge of the filter, and what `melm train` makes.
    pub tagger: TaggerSettings,
}

/// Pretrained models: folders, names on the Hugging Face hub, or `mini`, the embedded one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ModelNames {
    /// The masked language model that is fine-tuned to write entities.
    pub masked_lm: String,
    /// The encoder of the tagger.
    pub tagger: String,
    /// The folder of the mBART or mBART-50 that the method `mulda` fine-tunes; empty for none.
    pub seq2seq: String,
}

impl Plan {
    /// The markers of the plan's method: only `melm` itself writes them, of one language or several.
    pub fn marker_settings(&self) -> MarkerSettings {
        let linearize = self.markers.linearize && self.method.linearizes();
        MarkerSettings { linearize, ..self.markers.clone() }
    }

    /// Whether the masked language model is needed: to guess, for its piece vectors, or for its pieces, which a `MulDA`
    /// without a pretrained model takes.
    pub fn needs_masked_lm(&self) -> bool {
        let by_pieces = self.codemix.vectors == VectorKind::Pieces;
        let has_own = self.method == Method::Mulda && !self.model.seq2seq.is_empty();
        (self.method.reads_masked_lm() && !has_own) || (self.method.has_vectors() && by_pieces)
    }

    /// Whether anybody judges the drafts: there has to be a filter, and something to judge.
    pub fn has_judge(&self) -> bool {
        self.filter.mode != FilterMode::Off && self.method != Method::Gold
    }

    /// Refuses values that cannot be.
    fn check(&self, place: &str) -> Result<(), Error> {
        let wrong = |key: &str, expected: &str| Error::Setting {
            place: place.to_owned(),
            message: format!("`{key}` must be {expected}"),
        };
        if self.version != VERSION {
            return Err(wrong("version", "1"));
        }
        for (section, training) in
            [("finetune", &self.finetune.training), ("tagger", &self.tagger.training)]
        {
            if let Some((key, expected)) = training.first_invalid() {
                return Err(wrong(&format!("{section}.{key}"), expected));
            }
        }
        for (section, fault) in
            [("daga", self.daga.first_invalid()), ("mulda", self.mulda.first_invalid())]
        {
            if let Some((key, expected)) = fault {
                return Err(wrong(&format!("{section}.{key}"), &expected));
            }
        }
        Ok(())
    }
}

/// Returns the first of `(key, value, limit)` whose value is above its limit, with what is expected of it.
///
/// Models are allocated from these sizes, so they are bounded before any of them is used.
pub(crate) fn check_limits(
    sizes: &[(&'static str, usize, usize)],
) -> Option<(&'static str, String)> {
    let (key, value, limit) = sizes.iter().find(|(_, value, limit)| value > limit)?;
    Some((key, format!("at most {limit}, but is {value}")))
}
