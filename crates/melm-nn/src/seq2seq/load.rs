//! Opens a Hugging Face folder, initialises a new model, and saves a model.

use super::config::{SHARED, Seq2SeqConfig};
use super::model::Seq2Seq;
use crate::error::Error;
use crate::initial::Normal;
use crate::weights::shards::{self, Shard, Stored};
use crate::weights::{Tensor, TensorShape, convert, save_folder};
use std::path::Path;

/// The possible names of the shared table; the first is the name in this crate. A checkpoint contains the table under
/// one or more of these names, with equal values.
const TABLE_NAMES: [&str; 4] = [
    SHARED,
    "lm_head.weight",
    "model.encoder.embed_tokens.weight",
    "model.decoder.embed_tokens.weight",
];
const BIAS: &str = "final_logits_bias";

impl Seq2Seq {
    /// Opens a folder with an mBART or mBART-50 and appends `n_added` pieces to its vocabulary. Their embeddings are
    /// random, and `seed` determines them.
    ///
    /// # Errors
    /// Fails if a file cannot be read, if the model has another architecture, or if a tensor is missing or has the
    /// wrong shape.
    pub fn open(dir: &Path, n_added: usize, seed: u64) -> Result<Self, Error> {
        let path = dir.join("config.json");
        let text = crate::files::read_text(&path, crate::files::MAX_CONFIG_BYTES)
            .map_err(|source| Error::Read { path: path.clone(), source })?;
        let mut config = Seq2SeqConfig::parse(&path, &text)?;
        let (shards, table) = shards::open(dir)?;
        // All shapes are checked before memory is allocated, because the sizes in `config.json` are not trusted.
        let mut found = Vec::new();
        let mut missing = Vec::new();
        for TensorShape { name, shape, .. } in config.tensors() {
            let names = if name == SHARED { &TABLE_NAMES[..] } else { &[name.as_str()][..] };
            match names.iter().find_map(|name| table.get(*name)) {
                Some(stored) => {
                    check_shape(&shards, &name, stored, &shape)?;
                    found.push((name, stored));
                }
                None => missing.push(name),
            }
        }
        if !missing.is_empty() {
            return Err(Error::MissingTensors { path: dir.to_path_buf(), tensors: missing });
        }
        let n_stored = config.vocab_size;
        let bias = table.get(BIAS);
        if let Some(stored) = bias {
            check_shape(&shards, BIAS, stored, &[1, n_stored])?;
        }
        config.vocab_size = n_stored.saturating_add(n_added);
        let mut model = Self::random(&config, seed)?;
        for (name, stored) in found {
            let n = stored.shape.iter().product();
            read(&shards, &name, stored, &mut model.parameters.get_mut(&name)?[..n])?;
        }
        if let Some(stored) = bias {
            read(&shards, BIAS, stored, &mut model.bias[..n_stored])?;
        }
        Ok(model)
    }

    /// Writes `config.json` and `model.safetensors` to a folder that `from_pretrained` in Python can open.
    ///
    /// # Errors
    /// Fails if a file cannot be written.
    pub fn save(&self, dir: &Path) -> Result<(), Error> {
        let parameters = &self.parameters;
        let mut tensors: Vec<_> = parameters
            .list()
            .iter()
            .map(|p| Tensor { name: &p.name, shape: &p.shape, data: parameters.at(&p.range) })
            .collect();
        let shape = [1, self.bias.len()];
        tensors.push(Tensor { name: BIAS, shape: &shape, data: &self.bias });
        save_folder(dir, &self.config.to_json(), &tensors)
    }

    /// Creates a model with random parameters, with the distribution that Hugging Face uses. `seed` determines them.
    ///
    /// # Errors
    /// Fails with [`Error::Limit`] if there are too many layers, and with [`Error::OutOfMemory`] if there is not enough
    /// memory.
    pub fn random(config: &Seq2SeqConfig, seed: u64) -> Result<Self, Error> {
        let mut model = Self::zeros(config)?;
        for index in 0..model.parameters.list().len() {
            let name = model.parameters.list()[index].name.clone();
            model.parameters.draw(&name, 0, Normal::new(config.init_std), seed)?;
        }
        Ok(model)
    }
}

/// Fails if a stored tensor does not have the shape that follows from the configuration.
fn check_shape(
    shards: &[Shard],
    name: &str,
    stored: &Stored,
    expected: &[usize],
) -> Result<(), Error> {
    if stored.shape == expected {
        return Ok(());
    }
    let (path, tensor) = (shards[stored.shard].path.clone(), name.to_owned());
    let (found, expected) = (stored.shape.clone(), expected.to_vec());
    Err(Error::Shape { path, tensor, found, expected })
}

/// Reads the values of a stored tensor.
fn read(shards: &[Shard], name: &str, stored: &Stored, out: &mut [f32]) -> Result<(), Error> {
    let shard = &shards[stored.shard];
    let (path, tensor) = (shard.path.clone(), name.to_owned());
    if !convert::to_f32(stored.dtype, &shard.bytes()[stored.bytes.clone()], out) {
        return Err(Error::Dtype { path, tensor, dtype: format!("{:?}", stored.dtype) });
    }
    if out.iter().all(|value| value.is_finite()) {
        return Ok(());
    }
    Err(Error::NotFinite { path, tensor })
}
