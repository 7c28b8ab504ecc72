//! Opens a tagger from a checkpoint, initialises a new tagger, and saves a tagger.

use super::loss::TagLoss;
use super::{HeadKind, MAX_TAGS, Tagger, TaggerSettings};
use crate::config::Config;
use crate::crf::AllowedTransitions;
use crate::error::Error;
use crate::params::Parameters;
use crate::weights::{Checkpoint, TensorShape, tagger_transform_shapes};
use serde_json::{Map, Value, json};
use std::path::Path;

impl TaggerSettings {
    /// Reads the settings of a saved tagger. Allowed transitions are not stored, so `allowed` is `None`. Returns `None`
    /// if the checkpoint has no classifier.
    pub fn from_checkpoint(checkpoint: &Checkpoint) -> Option<Self> {
        let n_tags = *checkpoint.shape("classifier.weight")?.first()?;
        let has_crf = checkpoint.contains(TagLoss::NAMES[1]);
        let kind = if has_crf { HeadKind::Crf } else { HeadKind::Linear };
        Some(Self { n_tags, kind, allowed: None })
    }

    fn check_limit(&self) -> Result<(), Error> {
        Error::check_limit("n_tags", self.n_tags, MAX_TAGS)
    }

    fn tensors(&self, config: &Config) -> Vec<TensorShape> {
        let n = self.n_tags;
        let mut list = tagger_transform_shapes(config);
        list.push(TensorShape::new("classifier.weight", &[n, config.hidden_size]));
        list.push(TensorShape::new("classifier.bias", &[n]));
        if self.kind == HeadKind::Crf {
            let shapes: [&[usize]; 3] = [&[n], &[n, n], &[n]];
            let crf = TagLoss::NAMES.iter().zip(shapes);
            list.extend(crf.map(|(name, shape)| TensorShape::new(*name, shape)));
        }
        list
    }
}

impl Tagger {
    /// Opens the tagger of a checkpoint, or creates a new one with the encoder of the checkpoint.
    ///
    /// If the checkpoint has no classifier, a random one is created with the distribution that Hugging Face uses.
    /// `seed` determines it. If the checkpoint has no CRF, the scores of the CRF are initialised with zero, which makes
    /// it equivalent to a softmax.
    ///
    /// # Errors
    /// Fails if a tensor has the wrong shape or type, or cannot be read.
    ///
    /// # Panics
    /// Panics if there are no tags, or if the allowed transitions have a different number of tags.
    pub fn open(
        checkpoint: &Checkpoint,
        settings: TaggerSettings,
        seed: u64,
    ) -> Result<Self, Error> {
        let config = checkpoint.config();
        // The shapes of the encoder were checked when the checkpoint was opened. The shapes of the head are checked
        // here, before memory is allocated.
        settings.check_limit()?;
        for TensorShape { name, shape, .. } in settings.tensors(config) {
            if checkpoint.contains(&name) {
                checkpoint.check_stored(&name, &shape)?;
            }
        }
        Self::build(config, settings, seed, |tensor, out| {
            let is_stored = checkpoint.contains(&tensor.name);
            if is_stored {
                checkpoint.read_into(&tensor.name, &tensor.shape, out)?;
            }
            Ok(is_stored)
        })
    }

    /// Creates a tagger with random parameters, including the encoder. `seed` determines them.
    ///
    /// # Panics
    /// As [`Self::open`].
    pub fn random(config: &Config, settings: TaggerSettings, seed: u64) -> Result<Self, Error> {
        Self::build(config, settings, seed, |_, _| Ok(false))
    }

    /// Fills each tensor by calling `read`. If `read` returns false, the tensor is not stored and is initialised.
    fn build(
        config: &Config,
        settings: TaggerSettings,
        seed: u64,
        read: impl Fn(&TensorShape, &mut [f32]) -> Result<bool, Error>,
    ) -> Result<Self, Error> {
        assert!(settings.n_tags > 0, "a tagger needs at least one tag");
        let n_allowed =
            settings.allowed.as_ref().map_or(settings.n_tags, AllowedTransitions::n_tags);
        assert_eq!(
            n_allowed, settings.n_tags,
            "the allowed transitions are for another number of tags"
        );
        settings.check_limit()?;
        let mut parameters = Parameters::with_head(config, settings.tensors(config))?;
        for index in 0..parameters.list().len() {
            let parameter = &parameters.list()[index];
            let tensor = TensorShape::new(parameter.name.as_str(), &parameter.shape);
            let distribution = config.initial(&parameter.role);
            let is_read = read(&tensor, parameters.get_mut(&tensor.name)?)?;
            if !is_read && !TagLoss::NAMES.contains(&tensor.name.as_str()) {
                parameters.draw(&tensor.name, 0, distribution, seed)?;
            }
        }
        Ok(Self::new(config, settings, parameters))
    }

    /// Writes `config.json` and `model.safetensors` to a folder. `AutoModelForTokenClassification` in Python can open
    /// it, but ignores the CRF. `names` are the names of the tags.
    ///
    /// # Errors
    /// Fails if the number of names differs from the number of tags, or if a file cannot be written.
    pub fn save(&self, dir: &Path, names: &[String]) -> Result<(), Error> {
        let n_tags = self.settings().n_tags;
        if names.len() != n_tags {
            return Err(Error::TagNames { n_names: names.len(), n_tags });
        }
        let mut config = self.config().clone();
        let architecture = format!("{}ForTokenClassification", config.architecture().class);
        let numbered = || names.iter().enumerate();
        let by_number: Map<_, _> =
            numbered().map(|(i, name)| (i.to_string(), Value::from(name.as_str()))).collect();
        let by_name: Map<_, _> =
            numbered().map(|(i, name)| (name.clone(), Value::from(i))).collect();
        config.extra.insert("architectures".to_owned(), json!([architecture]));
        config.extra.insert("id2label".to_owned(), Value::Object(by_number));
        config.extra.insert("label2id".to_owned(), Value::Object(by_name));
        self.parameters().save(dir, &config)
    }
}
