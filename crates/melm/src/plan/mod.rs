//! The plan: every setting of a run, in one TOML file, one type, one way in.
//!
//! A preset gives a whole plan; a file, `--set` and flags edit its table key by key; then it is read into [`Plan`] and
//! checked, once. What a run saves is the whole plan again, so that it can be rerun as it was.

mod presets;
mod table;

pub use presets::{Preset, Size};
pub use table::PlanTable;

use serde::{Deserialize, Serialize};

use crate::Error;
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
    /// The pretrained models.
    pub model: Models,
    /// The tagger: judge of the filter, and what `melm train` makes.
    pub tagger: TaggerSettings,
}

/// Pretrained models: folders, names on the Hugging Face hub, or `mini`, the embedded one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Models {
    /// The masked language model that is fine-tuned to write entities.
    pub masked_lm: String,
    /// The encoder of the tagger.
    pub tagger: String,
}

impl Plan {
    /// Refuses values that cannot be.
    fn check(&self, place: &str) -> Result<(), Error> {
        let fit = &self.tagger.fit;
        let claims = [
            (self.version == VERSION, "version", "1"),
            (fit.learning_rate > 0.0, "tagger.learning_rate", "a number above 0"),
            ((0.0..=1.0).contains(&fit.warmup), "tagger.warmup", "a share from 0 to 1"),
            (fit.weight_decay >= 0.0, "tagger.weight_decay", "0 or more"),
            (fit.clip >= 0.0, "tagger.clip", "0 (no limit) or more"),
        ];
        match claims.iter().find(|(holds, ..)| !holds) {
            None => Ok(()),
            Some((_, key, expected)) => Err(Error::Setting {
                place: place.to_owned(),
                message: format!("`{key}` must be {expected}"),
            }),
        }
    }
}
