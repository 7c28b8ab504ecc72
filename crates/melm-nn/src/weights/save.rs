//! Writing a model folder.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use serde_json::{Map, Value, json};

use crate::Error;
use crate::config::Config;
use crate::params::{Parameter, Parameters};

/// The number of values that are converted to bytes at a time: large enough for the system, small enough for the cache.
const BLOCK: usize = 1 << 14;

/// A tensor to be saved.
#[derive(Clone, Copy, Debug)]
pub struct Tensor<'a> {
    /// The Hugging Face name.
    pub name: &'a str,
    /// Outermost dimension first.
    pub shape: &'a [usize],
    /// The values, row-major.
    pub data: &'a [f32],
}

/// Writes `config.json` and `model.safetensors` so that Python's `from_pretrained` opens the folder.
///
/// Creates the folder if necessary and keeps other files in it. Both files are written under a temporary name and then
/// renamed, so that nobody reads an incomplete file. Needs only a small block of memory.
///
/// # Errors
/// [`Error::TensorLength`] or [`Error::DuplicateTensor`] for invalid tensors, [`Error::Write`] if a file cannot be written.
pub fn save(dir: &Path, config: &Config, tensors: &[Tensor<'_>]) -> Result<(), Error> {
    save_folder(dir, &config.to_json(), tensors)
}

impl Parameters {
    /// Writes a model's folder; parameters trained on a GPU are read from there.
    pub(crate) fn save(&self, dir: &Path, config: &Config) -> Result<(), Error> {
        let values = self.read(&(0..self.table().range.end))?;
        let mut tensors = Vec::new();
        for Parameter { name, shape, range, .. } in self.list() {
            tensors.push(Tensor { name, shape, data: &values[range.clone()] });
        }
        save(dir, config, &tensors)
    }
}

/// Like [`save`], with the text of a `config.json`.
pub(crate) fn save_folder(dir: &Path, config: &str, tensors: &[Tensor<'_>]) -> Result<(), Error> {
    check(tensors)?;
    std::fs::create_dir_all(dir)
        .map_err(|source| Error::Write { path: dir.to_path_buf(), source })?;
    let weights = Unfinished::write(dir.join("model.safetensors"), |file| {
        write_tensors(file, tensors, &Map::new())
    })?;
    let config =
        Unfinished::write(dir.join("config.json"), |file| file.write_all(config.as_bytes()))?;
    weights.finish()?;
    config.finish()
}

/// Writes tensors and notes to one safetensors file. The file is complete or not changed at all.
pub(crate) fn write_file(
    path: &Path,
    tensors: &[Tensor<'_>],
    notes: &Map<String, Value>,
) -> Result<(), Error> {
    check(tensors)?;
    Unfinished::write(path.to_path_buf(), |file| write_tensors(file, tensors, notes))?.finish()
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

fn write_tensors(
    file: &mut impl Write,
    tensors: &[Tensor<'_>],
    notes: &Map<String, Value>,
) -> io::Result<()> {
    let header = header(tensors, notes);
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

/// Returns the JSON header, padded with spaces so that the numbers after it are aligned, as in Hugging Face files.
fn header(tensors: &[Tensor<'_>], notes: &Map<String, Value>) -> String {
    let mut map = Map::new();
    let mut metadata = notes.clone();
    // Without this, transformers refuses to open the file.
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

/// A file under a temporary name in its final folder. It is removed when dropped, unless it was finished.
struct Unfinished {
    temporary: PathBuf,
    path: PathBuf,
}

impl Unfinished {
    fn write(
        path: PathBuf,
        content: impl FnOnce(&mut BufWriter<File>) -> io::Result<()>,
    ) -> Result<Self, Error> {
        let mut temporary = path.clone().into_os_string();
        temporary.push(".part");
        let unfinished = Self { temporary: temporary.into(), path };
        let written = File::create(&unfinished.temporary).and_then(|file| {
            let mut file = BufWriter::new(file);
            content(&mut file)?;
            file.into_inner().map_err(io::IntoInnerError::into_error)?.sync_all()
        });
        match written {
            Ok(()) => Ok(unfinished),
            Err(source) => Err(Error::Write { path: unfinished.path.clone(), source }),
        }
    }

    fn finish(self) -> Result<(), Error> {
        std::fs::rename(&self.temporary, &self.path)
            .map_err(|source| Error::Write { path: self.path.clone(), source })
    }
}

impl Drop for Unfinished {
    fn drop(&mut self) {
        // A finished file has been renamed. An error here would hide the error that caused the drop.
        let _ = std::fs::remove_file(&self.temporary);
    }
}
