//! An opened model folder: the configuration, and the tensors, which are read on demand.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use safetensors::Dtype;

use super::convert;
use super::names::{self, ModelPart, TensorShape};
use super::shards::{self, Shard, Stored, Table};
use crate::Error;
use crate::config::Config;
use crate::files::{MAX_CONFIG_BYTES, read_text};

/// A stored tensor, with its scales if it is stored as int8.
struct Entry {
    stored: Stored,
    scales: Option<Stored>,
}

/// An opened model folder or embedded model: the configuration, and the tensors, which stay on disk until they are
/// read.
///
/// Opening checks everything that can be checked without reading the weights: that the architecture is supported, the
/// headers are valid, the encoder is complete, and the shapes agree with `config.json`. The masked-LM head may be
/// missing; [`Self::missing`] lists missing tensors.
pub struct Checkpoint {
    path: PathBuf,
    config: Config,
    shards: Vec<Shard>,
    entries: BTreeMap<String, Entry>,
    /// The names of tensors by their roles, if they differ.
    by_role: BTreeMap<String, String>,
}

impl Checkpoint {
    /// Opens a folder with `config.json` and `model.safetensors` or its shards.
    ///
    /// # Errors
    /// If a file cannot be read, is damaged, or does not contain an encoder with the shapes of `config.json`.
    pub fn open(dir: &Path) -> Result<Self, Error> {
        let path = dir.join("config.json");
        let text = read_text(&path, MAX_CONFIG_BYTES);
        let text = text.map_err(|source| Error::Read { path: path.clone(), source })?;
        let config = Config::parse(&path, &text)?;
        let (shards, table) = shards::open(dir)?;
        Self::new(dir.to_path_buf(), config, shards, table)
    }

    /// Opens a model that is embedded in the program.
    ///
    /// # Errors
    /// As [`Self::open`].
    pub fn from_bytes(config_json: &str, safetensors: &'static [u8]) -> Result<Self, Error> {
        let config = Config::parse("(embedded model)/config.json".as_ref(), config_json)?;
        let shard = Shard::embedded(safetensors);
        let table = shard.table(0)?;
        Self::new(shard.path.clone(), config, vec![shard], table)
    }

    fn new(path: PathBuf, config: Config, shards: Vec<Shard>, table: Table) -> Result<Self, Error> {
        let by_role = [ModelPart::Encoder, ModelPart::LmHead]
            .into_iter()
            .flat_map(|part| names::tensor_shapes(&config, part))
            .filter(|tensor| tensor.role != tensor.name)
            .map(|tensor| (tensor.role, tensor.name))
            .collect();
        let mut checkpoint = Self { path, config, shards, entries: BTreeMap::new(), by_role };
        checkpoint.entries = checkpoint.resolve(table)?;
        checkpoint.check()?;
        Ok(checkpoint)
    }

    /// Returns the configuration of the model.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// Returns the folder of the model.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns true if the tensor with this name or role is stored in the checkpoint.
    pub fn contains(&self, name: &str) -> bool {
        self.stored(name).is_some()
    }

    /// Returns true if all tensors of the masked-LM head are stored.
    pub fn has_masked_lm_head(&self) -> bool {
        self.config.model_type.has_masked_lm_head() && self.missing(ModelPart::LmHead).is_empty()
    }

    /// Fails with [`Error::NoMaskedLmHead`] if a tensor of the masked-LM head is not stored.
    pub fn require_masked_lm_head(&self) -> Result<(), Error> {
        if self.has_masked_lm_head() {
            return Ok(());
        }
        let tensors = self.missing(ModelPart::LmHead);
        Err(Error::NoMaskedLmHead { path: self.path().to_path_buf(), tensors })
    }

    /// Returns the names of all stored tensors in alphabetical order, including those that this engine does not use.
    /// Scales are not listed.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.entries.keys().map(String::as_str)
    }

    /// Returns the shape of a stored tensor, or `None` if it is not stored.
    pub fn shape(&self, name: &str) -> Option<&[usize]> {
        self.stored(name).map(|entry| entry.stored.shape.as_slice())
    }

    /// Returns the number of stored parameters, not counting scales.
    pub fn n_parameters(&self) -> usize {
        self.entries.values().map(|entry| entry.stored.shape.iter().product::<usize>()).sum()
    }

    /// Returns the names of the tensors of a part that are not stored and therefore have to be initialised.
    pub fn missing(&self, part: ModelPart) -> Vec<String> {
        let names = names::tensor_shapes(&self.config, part).into_iter().map(|tensor| tensor.name);
        names.filter(|name| !self.contains(name)).collect()
    }

    /// Reads a tensor as f32 into `out`, in row-major order.
    ///
    /// # Errors
    /// If the tensor is not stored, has another shape than `shape`, has an unsupported number type, or contains a
    /// number that is not finite.
    ///
    /// # Panics
    /// If the length of `out` is not the product of `shape`.
    pub fn read_into(&self, name: &str, shape: &[usize], out: &mut [f32]) -> Result<(), Error> {
        let entry = self.entry(name)?;
        let stored = &entry.stored;
        self.check_shape(name, stored, shape)?;
        assert_eq!(
            out.len(),
            shape.iter().product::<usize>(),
            "the buffer for `{name}` has the wrong length"
        );
        let bytes = self.bytes_of(stored);
        match &entry.scales {
            Some(scales) => self.read_scaled(bytes, scales, out),
            None if convert::to_f32(stored.dtype, bytes, out) => {}
            None => return Err(self.wrong_dtype(name, stored)),
        }
        if out.iter().all(|value| value.is_finite()) {
            return Ok(());
        }
        Err(Error::NotFinite { path: self.file_of(stored), tensor: name.to_owned() })
    }

    fn read_scaled(&self, bytes: &[u8], scales: &Stored, out: &mut [f32]) {
        let n_rows = scales.shape.iter().product::<usize>();
        if out.is_empty() || n_rows == 0 {
            return;
        }
        let width = out.len() / n_rows;
        let rows = out.chunks_exact_mut(width).zip(bytes.chunks_exact(width));
        for ((out, bytes), scale) in rows.zip(self.scale_values(scales)) {
            convert::dequantize_row(bytes, scale, out);
        }
    }

    fn scale_values(&self, scales: &Stored) -> impl Iterator<Item = f32> {
        let (values, _) = self.bytes_of(scales).as_chunks::<4>();
        values.iter().map(|&bytes| f32::from_le_bytes(bytes))
    }

    fn bytes_of(&self, stored: &Stored) -> &[u8] {
        &self.shards[stored.shard].bytes()[stored.bytes.clone()]
    }

    fn file_of(&self, stored: &Stored) -> PathBuf {
        self.shards[stored.shard].path.clone()
    }

    /// Translates the stored names to those of this crate and joins scales with their tensors. If a tensor is stored
    /// under our name and under an alias, the one under our name is used.
    fn resolve(&self, mut table: Table) -> Result<BTreeMap<String, Entry>, Error> {
        let quantised: Vec<String> = table
            .iter()
            .filter(|(_, stored)| stored.dtype == Dtype::I8)
            .map(|(name, _)| name.clone())
            .collect();
        let mut scales = BTreeMap::new();
        for name in quantised {
            let scale = table.remove(&format!("{name}.scale"));
            scales.insert(name.clone(), self.checked_scale(&name, &table[&name], scale)?);
        }
        let mut entries = BTreeMap::new();
        let mut aliased = Vec::new();
        for (name, stored) in table {
            let entry = Entry { scales: scales.remove(&name), stored };
            match names::alias(&self.config.architecture().names, &name) {
                Some(ours) => aliased.push((ours, entry)),
                None => drop(entries.insert(name, entry)),
            }
        }
        for (name, entry) in aliased {
            entries.entry(name).or_insert(entry);
        }
        Ok(entries)
    }

    fn checked_scale(
        &self,
        name: &str,
        stored: &Stored,
        scales: Option<Stored>,
    ) -> Result<Stored, Error> {
        let wrong =
            |problem| Error::Scale { path: self.file_of(stored), tensor: name.to_owned(), problem };
        let scales = scales.ok_or_else(|| wrong("missing"))?;
        if scales.dtype != Dtype::F32 {
            return Err(wrong("not stored as F32"));
        }
        if scales.shape.len() != 1 || stored.shape.first() != scales.shape.first() {
            return Err(wrong("not one number for each row"));
        }
        if !self.scale_values(&scales).all(f32::is_finite) {
            return Err(wrong("not finite everywhere"));
        }
        Ok(scales)
    }

    /// Checks that the encoder is complete and that every known tensor has the expected shape and a supported number
    /// type.
    fn check(&self) -> Result<(), Error> {
        let missing = self.missing(ModelPart::Encoder);
        if !missing.is_empty() {
            return Err(Error::MissingTensors { path: self.path.clone(), tensors: missing });
        }
        let parts = [ModelPart::Encoder, ModelPart::LmHead];
        for TensorShape { name, shape, .. } in
            parts.into_iter().flat_map(|part| names::tensor_shapes(&self.config, part))
        {
            let Some(entry) = self.entries.get(&name) else {
                continue;
            };
            self.check_shape(&name, &entry.stored, &shape)?;
            let readable =
                matches!(entry.stored.dtype, Dtype::F32 | Dtype::F16 | Dtype::BF16 | Dtype::I8);
            if !readable {
                return Err(self.wrong_dtype(&name, &entry.stored));
            }
        }
        Ok(())
    }

    /// Fails if the shape of a stored tensor is not `expected`. Does not read the values.
    ///
    /// # Errors
    /// [`Error::Shape`] for another shape, [`Error::MissingTensors`] if the tensor is not stored.
    pub(crate) fn check_stored(&self, name: &str, expected: &[usize]) -> Result<(), Error> {
        self.check_shape(name, &self.entry(name)?.stored, expected)
    }

    fn stored(&self, name: &str) -> Option<&Entry> {
        let by_role = || self.entries.get(self.by_role.get(name)?);
        self.entries.get(name).or_else(by_role)
    }

    fn entry(&self, name: &str) -> Result<&Entry, Error> {
        self.stored(name).ok_or_else(|| Error::MissingTensors {
            path: self.path.clone(),
            tensors: vec![name.to_owned()],
        })
    }

    fn check_shape(&self, name: &str, stored: &Stored, expected: &[usize]) -> Result<(), Error> {
        if stored.shape == expected {
            return Ok(());
        }
        let (found, expected) = (stored.shape.clone(), expected.to_vec());
        Err(Error::Shape { path: self.file_of(stored), tensor: name.to_owned(), found, expected })
    }

    fn wrong_dtype(&self, name: &str, stored: &Stored) -> Error {
        let dtype = format!("{:?}", stored.dtype);
        Error::Dtype { path: self.file_of(stored), tensor: name.to_owned(), dtype }
    }
}
