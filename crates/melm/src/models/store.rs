//! Opens models by name.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use melm_nn::config::Config;
use melm_nn::files::{MAX_CONFIG_BYTES, read_text};

use super::Pretrained;
use crate::Error;
use crate::hub::{DownloadProgress, Hub};
use crate::methods::PretrainedSeq2Seq;
use crate::plan::{ModelClass, ModelClasses, Plan, PlanBuilder};

/// The name of the embedded model.
pub const MINI: &str = "mini";

/// A callback that receives the name of a model and the progress of its download.
type OnDownload = dyn Fn(&str, DownloadProgress<'_>) + Send + Sync;

/// Opens models: `mini`, folders and, with a [`Hub`], names on the Hugging Face hub.
///
/// ```no_run
/// use melm::hub::Hub;
/// use melm::{Augment, Corpus, ModelStore};
///
/// # fn main() -> Result<(), melm::Error> {
/// // The library reads no environment variables: the path of the cache is an argument.
/// let models = ModelStore::new().with_hub(Hub::new("/home/me/.cache/huggingface/hub"));
/// let augment = Augment::new(Corpus::open("train.conll")?).models(models).model("xlm-roberta-base");
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Default)]
pub struct ModelStore {
    mini: Option<PathBuf>,
    hub: Option<Hub>,
    on_download: Option<Arc<OnDownload>>,
}

/// The models of a plan that a run uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NeededModels {
    /// True if the masked language model is needed.
    pub masked_lm: bool,
    /// True if the model of the tagger is needed.
    pub tagger: bool,
}

impl ModelStore {
    /// Creates a store that opens the embedded model and folders, but no names on the hub.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the folder of the model `mini`, for programs in which it is not embedded. An embedded model is not used then.
    #[must_use]
    pub fn with_mini(mut self, folder: impl Into<PathBuf>) -> Self {
        self.mini = Some(folder.into());
        self
    }

    /// Makes the store look up names in the cache of a hub, and download models that are not there.
    #[must_use]
    pub fn with_hub(mut self, hub: Hub) -> Self {
        self.hub = Some(hub);
        self
    }

    /// Makes the store call `on_download` with the name of a model and the progress of its download.
    #[must_use]
    pub fn on_download(
        mut self,
        on_download: impl Fn(&str, DownloadProgress<'_>) + Send + Sync + 'static,
    ) -> Self {
        self.on_download = Some(Arc::new(on_download));
        self
    }

    /// Opens a model. A model that is given by name is downloaded if it is not in the cache.
    pub fn open(&self, model: &str) -> Result<Pretrained, Error> {
        match &self.mini {
            Some(folder) if model == MINI => Ok(Pretrained::open(folder)?.with_name(MINI)),
            None if model == MINI => mini(),
            _ => Pretrained::open(&self.folder(model)?),
        }
    }

    /// Opens the mBART or mBART-50 of the method `mulda`, which is given as a folder or by name. A model that is given by
    /// name is downloaded if it is not in the cache.
    pub fn open_seq2seq(&self, model: &str) -> Result<PretrainedSeq2Seq, Error> {
        PretrainedSeq2Seq::open(&self.folder(model)?)
    }

    /// Returns the folder of a model. Downloads the model if it is not on this machine.
    fn folder(&self, model: &str) -> Result<PathBuf, Error> {
        let Some(hub) = &self.hub else {
            let folder = Path::new(model);
            let found = folder.is_dir().then(|| folder.to_path_buf());
            return found.ok_or_else(|| Error::NotAModel { name: model.to_owned() });
        };
        hub.resolve(model, &mut |progress| {
            if let Some(on_download) = &self.on_download {
                on_download(model, progress);
            }
        })
    }

    /// Builds a plan whose preset fits the classes of its models. Downloads the models in `needs` that are not on this
    /// machine. Any other model that is not on this machine is assumed to be like XLM-R-base.
    pub fn plan(
        &self,
        builder: &PlanBuilder,
        needs: impl Fn(&Plan) -> NeededModels,
    ) -> Result<Plan, Error> {
        // The names of the models do not depend on the classes, so that any class gives the right names here.
        let first = builder.build(ModelClasses::both(ModelClass::XLM_R_BASE))?;
        let needs = needs(&first);
        let class = |model: &str, download| -> Result<ModelClass, Error> {
            Ok(self.class(model, download)?.unwrap_or(ModelClass::XLM_R_BASE))
        };
        builder.build(ModelClasses {
            masked_lm: class(&first.model.masked_lm, needs.masked_lm)?,
            tagger: class(&first.model.tagger, needs.tagger)?,
        })
    }

    /// Returns the class of a model according to its `config.json`. If the model is not on this machine, downloads it
    /// with `download`, or returns `None` without. Also returns `None` if `config.json` cannot be used, because opening
    /// the model will report this error.
    pub fn class(&self, model: &str, download: bool) -> Result<Option<ModelClass>, Error> {
        if model == MINI {
            return Ok(Some(ModelClass::MINI));
        }
        let folder = if download {
            Some(self.folder(model)?)
        } else {
            let cached = self.hub.as_ref().and_then(|hub| hub.find_local(model));
            cached.or_else(|| Path::new(model).is_dir().then(|| PathBuf::from(model)))
        };
        let path = folder.map(|folder| folder.join("config.json"));
        let config = path
            .and_then(|path| Config::parse(&path, &read_text(&path, MAX_CONFIG_BYTES).ok()?).ok());
        Ok(config.map(|config| ModelClass::from_config(&config)))
    }
}

#[cfg(feature = "mini")]
fn mini() -> Result<Pretrained, Error> {
    let files = super::EmbeddedFiles {
        config: melm_mini::CONFIG,
        tokenizer: melm_mini::TOKENIZER,
        tokenizer_config: melm_mini::TOKENIZER_CONFIG,
        special_tokens_map: melm_mini::SPECIAL_TOKENS_MAP,
        weights: melm_mini::WEIGHTS.ok_or(Error::NoEmbeddedModel)?,
    };
    Pretrained::embedded(MINI, files)
}

#[cfg(not(feature = "mini"))]
fn mini() -> Result<Pretrained, Error> {
    Err(Error::NoEmbeddedModel)
}

#[cfg(all(test, feature = "mini"))]
mod tests {
    use super::*;

    #[test]
    fn the_embedded_model_has_the_fingerprint_of_its_folder() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../melm-mini/model");
        let open = |model: &str| ModelStore::new().open(model).unwrap().fingerprint().unwrap();
        assert_eq!(open(MINI), open(folder));
        let from_folder = ModelStore::new().with_mini(folder).open(MINI).unwrap();
        assert_eq!(from_folder.name(), MINI);
        assert_eq!(from_folder.fingerprint().unwrap(), open(MINI));
    }
}

#[cfg(all(test, not(feature = "mini")))]
mod tests {
    use super::*;

    #[test]
    fn a_program_without_the_embedded_model_says_so() {
        assert!(matches!(ModelStore::new().open(MINI), Err(Error::NoEmbeddedModel)));
    }
}
