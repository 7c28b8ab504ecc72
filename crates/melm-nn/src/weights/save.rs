//! Writes model folders.

use std::collections::BTreeSet;
use std::io::{self, BufWriter, Write};
use std::path::Path;

use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};

use crate::Error;
use crate::config::Config;
use crate::files::{UnfinishedFile, create_folder};
use crate::params::{Parameter, Parameters};

/// The number of values that are converted to bytes at a time: large enough for efficient writes, small enough for the
/// cache.
const BLOCK: usize = 1 << 14;

/// A tensor to be saved.
#[derive(Clone, Copy, Debug)]
pub struct Tensor<'a> {
    /// The Hugging Face name.
    pub name: &'a str,
    /// The shape, outermost dimension first.
    pub shape: &'a [usize],
    /// The values in row-major order.
    pub data: &'a [f32],
}

/// Writes `config.json` and `model.safetensors`, so that Python's `from_pretrained` can open the folder.
///
/// Creates the folder if necessary and does not touch other files in it. Both files are written under a temporary name
/// and then renamed, so that nobody reads an incomplete file. Only a small block of memory is needed.
///
/// # Errors
/// [`Error::TensorLength`] or [`Error::DuplicateTensor`] for invalid tensors, [`Error::Write`] if a file cannot be written.
pub fn save(dir: &Path, config: &Config, tensors: &[Tensor<'_>]) -> Result<(), Error> {
    save_folder(dir, &config.to_json(), tensors)
}

impl Parameters {
    /// Writes the folder of a model. Parameters that were trained on a GPU are read from GPU memory.
    pub(crate) fn save(&self, dir: &Path, config: &Config) -> Result<(), Error> {
        let values = self.read(&(0..self.table().range.end))?;
        let mut tensors = Vec::new();
        for Parameter { name, shape, range, .. } in self.list() {
            tensors.push(Tensor { name, shape, data: &values[range.clone()] });
        }
        save(dir, config, &tensors)
    }
}

/// Like [`save`], but takes the text of `config.json`.
pub(crate) fn save_folder(dir: &Path, config: &str, tensors: &[Tensor<'_>]) -> Result<(), Error> {
    check(tensors)?;
    let failed = |path: &Path| {
        let path = path.to_path_buf();
        move |source| Error::Write { path, source }
    };
    create_folder(dir).map_err(failed(dir))?;
    let weights_path = dir.join("model.safetensors");
    let config_path = dir.join("config.json");
    let weights = write_unfinished(&weights_path, |file| {
        write_tensors(file, &header(tensors, &Map::new()), tensors)
    })
    .map_err(failed(&weights_path))?;
    let config = write_unfinished(&config_path, |file| file.write_all(config.as_bytes()))
        .map_err(failed(&config_path))?;
    weights.finish().map_err(failed(&weights_path))?;
    config.finish().map_err(failed(&config_path))
}

/// The key of a file's digest in its metadata.
pub(crate) const SEAL: &str = "sha256";

/// Returns the entry of a digest in the header. The digest is computed with [`UNSEALED`] in its place.
pub(super) fn seal_entry(digest: &str) -> String {
    format!("\"{SEAL}\":\"{digest}\"")
}

/// Stands for the digest while it is computed.
pub(super) const UNSEALED: &str =
    "0000000000000000000000000000000000000000000000000000000000000000";

/// Writes tensors and notes to one safetensors file, with the SHA-256 of the file among the notes. If this fails, an
/// existing file is not changed.
pub(crate) fn write_sealed(
    path: &Path,
    tensors: &[Tensor<'_>],
    mut notes: Map<String, Value>,
) -> Result<(), Error> {
    check(tensors)?;
    notes.insert(SEAL.to_owned(), UNSEALED.into());
    let unsealed = header(tensors, &notes);
    let written = || {
        let mut digest = DigestWriter::default();
        write_tensors(&mut digest, &unsealed, tensors)?;
        let sealed = unsealed.replacen(&seal_entry(UNSEALED), &seal_entry(&digest.finish()), 1);
        write_unfinished(path, |file| write_tensors(file, &sealed, tensors))?.finish()
    };
    written().map_err(|source| Error::Write { path: path.to_path_buf(), source })
}

/// Computes the SHA-256 of everything that is written to it.
#[derive(Default)]
pub(super) struct DigestWriter(Sha256);

impl DigestWriter {
    /// Returns the digest in hexadecimal.
    pub(super) fn finish(self) -> String {
        self.0.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
    }
}

impl Write for DigestWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.update(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn check(tensors: &[Tensor<'_>]) -> Result<(), Error> {
    let mut names = BTreeSet::new();
    for &Tensor { name, shape, data } in tensors {
        let n_values = shape.iter().try_fold(1usize, |product, &size| product.checked_mul(size));
        if n_values != Some(data.len()) {
            let (tensor, shape, found) = (name.to_owned(), shape.to_vec(), data.len());
            return Err(Error::TensorLength { tensor, shape, found });
        }
        if !names.insert(name) {
            return Err(Error::DuplicateTensor { tensor: name.to_owned() });
        }
    }
    Ok(())
}

fn write_tensors(file: &mut impl Write, header: &str, tensors: &[Tensor<'_>]) -> io::Result<()> {
    file.write_all(&(header.len() as u64).to_le_bytes())?;
    file.write_all(header.as_bytes())?;
    let mut bytes = Vec::with_capacity(BLOCK * size_of::<f32>());
    for block in tensors.iter().flat_map(|tensor| tensor.data.chunks(BLOCK)) {
        bytes.clear();
        bytes.extend(block.iter().flat_map(|value| value.to_le_bytes()));
        file.write_all(&bytes)?;
    }
    Ok(())
}

/// Returns the JSON header, padded with spaces so that the tensor data after it is aligned, as in Hugging Face files.
fn header(tensors: &[Tensor<'_>], notes: &Map<String, Value>) -> String {
    let mut map = Map::new();
    let mut metadata = notes.clone();
    // Without this entry, transformers refuses to open the file.
    metadata.insert("format".to_owned(), json!("pt"));
    map.insert("__metadata__".to_owned(), Value::Object(metadata));
    let mut start = 0;
    for tensor in tensors {
        let end = start + size_of_val(tensor.data);
        let info = json!({"dtype": "F32", "shape": tensor.shape, "data_offsets": [start, end]});
        map.insert(tensor.name.to_owned(), info);
        start = end;
    }
    let mut text = serde_json::Value::Object(map).to_string();
    let padding = text.len().next_multiple_of(8) - text.len();
    text.extend(std::iter::repeat_n(' ', padding));
    text
}

/// Writes a file and waits until it is on the disk. The file gets its final name only by [`UnfinishedFile::finish`].
fn write_unfinished(
    path: &Path,
    content: impl FnOnce(&mut BufWriter<UnfinishedFile>) -> io::Result<()>,
) -> io::Result<UnfinishedFile> {
    let mut buffered = BufWriter::new(UnfinishedFile::create(path)?);
    content(&mut buffered)?;
    let file = buffered.into_inner().map_err(io::IntoInnerError::into_error)?;
    file.sync()?;
    Ok(file)
}
