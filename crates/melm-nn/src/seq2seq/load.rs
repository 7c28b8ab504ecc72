//! From a Hugging Face folder to a model; new models.

use super::config::{SHARED, Seq2SeqConfig};
use super::model::Seq2Seq;
use crate::dropout::mix;
use crate::error::Error;
use crate::weights::shards::{self, Shard, Stored};
use crate::weights::{Tensor, convert, save_folder};
use std::path::Path;

/// What the shared table may be called, ours first: a checkpoint holds one of them, or several that are the same.
const TABLE_NAMES: [&str; 4] = [
    SHARED,
    "lm_head.weight",
    "model.encoder.embed_tokens.weight",
    "model.decoder.embed_tokens.weight",
];
const BIAS: &str = "final_logits_bias";

impl Seq2Seq {
    /// Opens a folder with an mBART or mBART-50, with `n_added` pieces after its own, whose rows are drawn from `seed`.
    pub fn open(dir: &Path, n_added: usize, seed: u64) -> Result<Self, Error> {
        let path = dir.join("config.json");
        let text = std::fs::read_to_string(&path)
            .map_err(|source| Error::Read { path: path.clone(), source })?;
        let mut config = Seq2SeqConfig::parse(&path, &text)?;
        let n_stored = config.vocab_size;
        config.vocab_size += n_added;
        let (shards, table) = shards::open(dir)?;
        let mut model = Self::random(&config, seed);
        let mut missing = Vec::new();
        for index in 0..model.parameters.list().len() {
            let parameter = &model.parameters.list()[index];
            let (name, mut shape) = (parameter.name.clone(), parameter.shape.clone());
            let names = if name == SHARED { &TABLE_NAMES[..] } else { &[name.as_str()][..] };
            let Some(stored) = names.iter().find_map(|name| table.get(*name)) else {
                missing.push(name);
                continue;
            };
            if name == SHARED {
                shape[0] = n_stored;
            }
            let n = shape.iter().product();
            read(&shards, (&name, stored), &shape, &mut model.parameters.get_mut(&name)?[..n])?;
        }
        if !missing.is_empty() {
            return Err(Error::MissingTensors { path: dir.to_path_buf(), tensors: missing });
        }
        if let Some(stored) = table.get(BIAS) {
            read(&shards, (BIAS, stored), &[1, n_stored], &mut model.bias[..n_stored])?;
        }
        Ok(model)
    }

    /// Writes `config.json` and `model.safetensors`, which Python's `from_pretrained` opens.
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

    /// A model drawn from `seed` as Hugging Face draws a new one.
    pub fn random(config: &Seq2SeqConfig, seed: u64) -> Self {
        let mut model = Self::zeros(config);
        for index in 0..model.parameters.list().len() {
            let parameter = &model.parameters.list()[index];
            let (range, n_dimensions) = (parameter.range.clone(), parameter.shape.len());
            let is_bias = parameter.name.ends_with("bias");
            let stream = parameter.name.bytes().fold(seed, |key, byte| mix(key ^ u64::from(byte)));
            let values = &mut model.parameters.values_mut()[range];
            match (n_dimensions, is_bias) {
                (1, true) => {}
                (1, false) => values.fill(1.0),
                _ => {
                    for (index, value) in (0..).zip(values) {
                        *value = config.init_std * crate::mlm::normal(stream.wrapping_add(index));
                    }
                }
            }
        }
        model
    }
}

fn read(
    shards: &[Shard],
    (name, stored): (&str, &Stored),
    shape: &[usize],
    out: &mut [f32],
) -> Result<(), Error> {
    let shard = &shards[stored.shard];
    let (path, tensor) = (shard.path.clone(), name.to_owned());
    if stored.shape != shape {
        let (found, expected) = (stored.shape.clone(), shape.to_vec());
        return Err(Error::Shape { path, tensor, found, expected });
    }
    if !convert::floats(stored.dtype, &shard.bytes()[stored.bytes.clone()], out) {
        return Err(Error::Dtype { path, tensor, dtype: format!("{:?}", stored.dtype) });
    }
    if out.iter().all(|value| value.is_finite()) {
        return Ok(());
    }
    Err(Error::NotFinite { path, tensor })
}
