//! Opens a model from a checkpoint, initialises a new model, and saves a model.

use super::MaskedLm;
use crate::config::Config;
use crate::error::Error;
use crate::params::{Parameters, TABLE};
use crate::weights::Checkpoint;
use std::path::Path;

/// The roles of the tensors whose first dimension is the size of the vocabulary.
const BY_PIECE: [&str; 2] = [TABLE, "lm_head.bias"];

impl MaskedLm {
    /// Opens the model of a checkpoint and appends `n_added` pieces to its vocabulary.
    ///
    /// The embeddings of added pieces are random, with the distribution that Hugging Face uses. `seed` determines them.
    /// They are trained even if the tensor that contains them is frozen; see [`Self::set_first_added_piece`].
    ///
    /// # Errors
    /// [`Error::NoMaskedLmHead`] if the checkpoint has no masked-LM head. Also fails if a tensor has the wrong shape or
    /// type, or cannot be read.
    pub fn open(checkpoint: &Checkpoint, n_added: usize, seed: u64) -> Result<Self, Error> {
        checkpoint.require_masked_lm_head()?;
        let mut config = checkpoint.config().clone();
        let n_stored = config.vocab_size;
        config.vocab_size = n_stored.saturating_add(n_added);
        let mut parameters = Parameters::zeros(&config)?;
        for index in 0..parameters.list().len() {
            let parameter = &parameters.list()[index];
            let (name, mut shape) = (parameter.name.clone(), parameter.shape.clone());
            if BY_PIECE.contains(&parameter.role.as_str()) {
                shape[0] = n_stored;
            }
            let n_read = shape.iter().product();
            checkpoint.read_into(&name, &shape, &mut parameters.get_mut(&name)?[..n_read])?;
            let distribution = config.initial(&parameters.list()[index].role);
            parameters.draw(&name, n_read, distribution, seed)?;
        }
        let mut model = Self::new(&config, parameters);
        model.set_first_added_piece(n_stored);
        Ok(model)
    }

    /// Records that the pieces from `first` on were added for a task. Their embeddings and output biases are trained
    /// even if the tensors that contain them are frozen. [`Self::open`] does this for the pieces that it adds; call
    /// this method if a task uses pieces that the checkpoint already contains.
    pub fn set_first_added_piece(&mut self, first: usize) {
        self.parameters_mut().set_added_rows(&BY_PIECE, first);
    }

    /// Creates a model with random parameters, with the distribution that Hugging Face uses. `seed` determines them.
    ///
    /// # Errors
    /// [`Error::NoMaskedLmHead`] if the family has no masked-LM head, [`Error::OutOfMemory`] or [`Error::Limit`] if the
    /// model is too large.
    pub fn random(config: &Config, seed: u64) -> Result<Self, Error> {
        if !config.model_type.has_masked_lm_head() {
            let path = config.model_type.name().into();
            return Err(Error::NoMaskedLmHead { path, tensors: Vec::new() });
        }
        let mut parameters = Parameters::zeros(config)?;
        for index in 0..parameters.list().len() {
            let parameter = &parameters.list()[index];
            let (name, distribution) = (parameter.name.clone(), config.initial(&parameter.role));
            parameters.draw(&name, 0, distribution, seed)?;
        }
        Ok(Self::new(config, parameters))
    }

    /// Writes `config.json` and `model.safetensors` to a folder that `from_pretrained` in Python can open.
    ///
    /// # Errors
    /// Fails if a file cannot be written.
    pub fn save(&self, dir: &Path) -> Result<(), Error> {
        self.parameters().save(dir, self.config())
    }
}
