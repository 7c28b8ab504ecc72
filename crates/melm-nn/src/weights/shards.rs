//! The weight files of a model: either one safetensors file, or several shards with an index.

use std::collections::BTreeMap;
use std::fs::File;
use std::ops::Range;
use std::path::{Path, PathBuf};

use memmap2::Mmap;
use safetensors::{Dtype, SafeTensors};

use crate::Error;
use crate::files::{MAX_CONFIG_BYTES, open_regular, read_text};

const LFS_POINTER: &[u8] = b"version https://git-lfs.github.com/";

/// The bytes of a safetensors file.
enum Bytes {
    Mapped(Mmap),
    Embedded(&'static [u8]),
}

/// One safetensors file.
pub(crate) struct Shard {
    pub(crate) path: PathBuf,
    bytes: Bytes,
}

/// The position of a stored tensor in its file. The length of `bytes` matches `dtype` and `shape`, and `bytes` lies
/// inside the file.
#[derive(Clone, Debug)]
pub(crate) struct Stored {
    pub(crate) shard: usize,
    pub(crate) dtype: Dtype,
    pub(crate) shape: Vec<usize>,
    pub(crate) bytes: Range<usize>,
}

/// Stored tensors by name, as named in the file.
pub(crate) type Table = BTreeMap<String, Stored>;

impl Shard {
    pub(crate) fn bytes(&self) -> &[u8] {
        match &self.bytes {
            Bytes::Mapped(map) => map,
            Bytes::Embedded(bytes) => bytes,
        }
    }

    pub(crate) fn embedded(bytes: &'static [u8]) -> Self {
        Self { path: PathBuf::from("(embedded model)"), bytes: Bytes::Embedded(bytes) }
    }

    pub(crate) fn open(path: PathBuf) -> Result<Self, Error> {
        let map = open_regular(&path).and_then(|file| map(&file));
        match map {
            Ok(map) => Ok(Self { path, bytes: Bytes::Mapped(map) }),
            Err(source) => Err(Error::Read { path, source }),
        }
    }

    /// Returns the value of `key` in the metadata of the header, or `None` if there is none.
    pub(crate) fn metadata(&self, key: &str) -> Result<Option<String>, Error> {
        let (_, metadata) = SafeTensors::read_metadata(self.bytes())
            .map_err(|source| Error::Safetensors { path: self.path.clone(), source })?;
        Ok(metadata.metadata().as_ref().and_then(|notes| notes.get(key).cloned()))
    }

    /// Reads and validates the header. Tensors must not overlap, must lie inside the file, and their lengths must match
    /// their shapes.
    pub(crate) fn table(&self, shard: usize) -> Result<Table, Error> {
        let bytes = self.bytes();
        if bytes.starts_with(LFS_POINTER) {
            return Err(Error::LfsPointer { path: self.path.clone() });
        }
        let (header, metadata) = SafeTensors::read_metadata(bytes)
            .map_err(|source| Error::Safetensors { path: self.path.clone(), source })?;
        let data = header + size_of::<u64>();
        let tensors = metadata.tensors().into_iter().map(|(name, info)| {
            let (start, end) = info.data_offsets;
            let bytes = data + start..data + end;
            (name, Stored { shard, dtype: info.dtype, shape: info.shape.clone(), bytes })
        });
        Ok(tensors.collect())
    }
}

#[expect(
    unsafe_code,
    reason = "a memory map is how a 1 GB model opens in milliseconds and is never held twice"
)]
fn map(file: &File) -> std::io::Result<Mmap> {
    // SAFETY: the map is read-only and private to this module. Its bytes are only read as plain numbers, for which
    // every bit pattern is valid. If another process shortens the file while it is read, the operating system ends this
    // process with SIGBUS. Our own `save` never shortens a file; it replaces files by renaming.
    unsafe { Mmap::map(file) }
}

/// Opens the weights of a folder: `model.safetensors` if it exists, otherwise the shards listed in
/// `model.safetensors.index.json`.
pub(crate) fn open(dir: &Path) -> Result<(Vec<Shard>, Table), Error> {
    let single = dir.join("model.safetensors");
    if single.exists() {
        let shard = Shard::open(single)?;
        let table = shard.table(0)?;
        return Ok((vec![shard], table));
    }
    let index = dir.join("model.safetensors.index.json");
    if index.exists() {
        return open_index(dir, &index);
    }
    let path = dir.to_path_buf();
    let pickled = ["pytorch_model.bin", "pytorch_model.bin.index.json"];
    if pickled.iter().any(|name| dir.join(name).exists()) {
        return Err(Error::PickleOnly { path });
    }
    Err(Error::NoWeights { path })
}

#[derive(serde::Deserialize)]
struct Index {
    weight_map: BTreeMap<String, String>,
}

fn open_index(dir: &Path, path: &Path) -> Result<(Vec<Shard>, Table), Error> {
    let text = read_text(path, MAX_CONFIG_BYTES)
        .map_err(|source| Error::Read { path: path.to_path_buf(), source })?;
    let index: Index = serde_json::from_str(&text)
        .map_err(|source| Error::Json { path: path.to_path_buf(), source })?;

    let mut opened: BTreeMap<&str, Table> = BTreeMap::new();
    let (mut shards, mut table) = (Vec::new(), Table::new());
    for (tensor, name) in &index.weight_map {
        if !opened.contains_key(name.as_str()) {
            let shard = Shard::open(shard_path(dir, path, name)?)?;
            opened.insert(name, shard.table(shards.len())?);
            shards.push(shard);
        }
        let Some(stored) = opened.get_mut(name.as_str()).and_then(|tensors| tensors.remove(tensor))
        else {
            return Err(Error::NotInShard { path: dir.join(name), tensor: tensor.clone() });
        };
        table.insert(tensor.clone(), stored);
    }
    Ok((shards, table))
}

/// Returns the path of a shard. A shard must be in the model folder itself, so that a malicious index cannot name other
/// files.
fn shard_path(dir: &Path, index: &Path, name: &str) -> Result<PathBuf, Error> {
    let plain = !name.contains(['/', '\\', ':', '\0']) && name.ends_with(".safetensors");
    if !plain {
        return Err(Error::ShardName { path: index.to_path_buf(), shard: name.to_owned() });
    }
    let path = dir.join(name);
    if path.exists() { Ok(path) } else { Err(Error::MissingShard { path }) }
}
