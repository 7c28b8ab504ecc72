//! Stores the state of an interrupted training run in one file: the trained parameters, the moments of the optimiser,
//! and a note of the caller.
//!
//! The state is in one file, so that its parts always belong together. Frozen tensors and frozen rows are not stored,
//! because they do not change.

use std::io::{ErrorKind, Write as _};
use std::ops::Range;
use std::path::Path;

use safetensors::Dtype;
use serde_json::Map;

use super::convert;
use super::save::{DigestWriter, SEAL, Tensor, UNSEALED, seal_entry, write_sealed};
use super::shards::{Shard, Table};
use crate::Error;
use crate::cuda::GpuWeights;
use crate::optim::Adam;
use crate::params::{Parameter, Parameters};

/// The metadata keys of the caller's note and of the number of steps.
const NOTE: &str = "note";
const STEPS: &str = "steps";

/// Returns the name under which the values of a tensor, or one of its moments, are stored.
fn stored_name(kind: &str, parameter: &Parameter) -> String {
    format!("{kind}/{}", parameter.name)
}

impl Parameters {
    /// Writes the trained rows of all tensors, and the caller's `note`, to a file.
    ///
    /// # Errors
    /// If the file cannot be written or the GPU fails.
    pub fn save_trained(&self, path: &Path, note: &str) -> Result<(), Error> {
        write(path, note, self, None)
    }

    /// Reads the trained rows of all tensors from a file that [`Self::save_trained`] or [`Adam::save`] wrote. Returns
    /// the note.
    ///
    /// # Errors
    /// [`Error::State`] if the file belongs to another training run, [`Error::DamagedState`] if its digest does not fit
    /// its content, or another error if it cannot be read.
    pub fn restore_trained(&mut self, path: &Path) -> Result<String, Error> {
        State::open(path)?.read_values(self)
    }

    /// Copies the trained parameters to `kept`. Parameters in GPU memory are copied within GPU memory if there is room,
    /// because downloads are slow.
    pub fn snapshot_trained(&self, kept: &mut ParameterSnapshot) -> Result<(), Error> {
        if self.keep_on_gpu(&mut kept.on_gpu)? {
            return Ok(());
        }
        kept.on_gpu = None;
        // All values before the table are downloaded at once, because many small downloads from a GPU are slow.
        let ranges = [0..self.table().range.start, self.table().trained()];
        kept.here.clear();
        for range in ranges.into_iter().filter(|range| !range.is_empty()) {
            let values = self.read(&range)?.into_owned();
            kept.here.push((range, values));
        }
        Ok(())
    }

    /// Restores a copy made by [`Self::snapshot_trained`]. The model and its frozen tensors must be the same.
    ///
    /// # Errors
    /// If the GPU fails.
    pub fn restore_snapshot(&mut self, kept: &ParameterSnapshot) -> Result<(), Error> {
        if let Some(copy) = &kept.on_gpu {
            return self.restore_on_gpu(copy);
        }
        self.fetch()?;
        for (range, values) in &kept.here {
            self.values_mut()[range.clone()].copy_from_slice(values);
        }
        Ok(())
    }
}

/// A copy of the trained parameters in memory; see [`Parameters::snapshot_trained`].
#[derive(Default)]
pub struct ParameterSnapshot {
    /// Copied ranges of the parameters, if the copy is not in GPU memory.
    here: Vec<(Range<usize>, Vec<f32>)>,
    on_gpu: Option<GpuWeights>,
}

impl Adam {
    /// Writes everything that the next step depends on to a file: the trained rows of all tensors, their moments,
    /// the number of steps, and the caller's `note`.
    ///
    /// # Errors
    /// If the file cannot be written or the GPU fails.
    pub fn save(&self, parameters: &Parameters, path: &Path, note: &str) -> Result<(), Error> {
        write(path, note, parameters, Some(self))
    }

    /// Restores the state that [`Self::save`] wrote and returns the note. The frozen rows must not have changed.
    ///
    /// # Errors
    /// [`Error::State`] if the file belongs to another training run, [`Error::DamagedState`] if its digest does not fit
    /// its content, or another error if it cannot be read.
    pub fn restore(&mut self, parameters: &mut Parameters, path: &Path) -> Result<String, Error> {
        let state = State::open(path)?;
        let note = state.read_values(parameters)?;
        let layout = self.layout();
        let (mean, square) = self.moments_mut();
        for (kind, moments) in [("mean", mean), ("square", square)] {
            for parameter in parameters.list().iter().filter(|p| p.is_trained()) {
                let range = layout.range(&parameter.trained());
                state.read(&stored_name(kind, parameter), &mut moments[range])?;
            }
        }
        let n_steps = state.metadata(STEPS)?.parse().map_err(|_| state.mismatch())?;
        self.set_steps(n_steps);
        Ok(note)
    }
}

/// Returns the note of a file that [`Parameters::save_trained`] or [`Adam::save`] wrote.
///
/// # Errors
/// [`Error::DamagedState`] if the digest of the file does not fit its content, or another error if it cannot be read.
pub fn read_note(path: &Path) -> Result<String, Error> {
    State::open(path)?.metadata(NOTE)
}

/// Writes a state file. Without an optimiser, the file contains only the parameters.
fn write(
    path: &Path,
    note: &str,
    parameters: &Parameters,
    adam: Option<&Adam>,
) -> Result<(), Error> {
    let values = parameters.read(&(0..parameters.table().range.end))?;
    let trained = || parameters.list().iter().filter(|parameter| parameter.is_trained());
    let mut stored: Vec<_> =
        trained().map(|p| StoredRows::new("value", p, &values[p.trained()])).collect();
    let mut notes = Map::new();
    notes.insert(NOTE.to_owned(), note.into());
    let moments = adam.map(Adam::moments).transpose()?;
    if let (Some(adam), Some([mean, square])) = (adam, &moments) {
        for (kind, moments) in [("mean", mean), ("square", square)] {
            let range = |p: &Parameter| adam.layout().range(&p.trained());
            stored.extend(trained().map(|p| StoredRows::new(kind, p, &moments[range(p)])));
        }
        notes.insert(STEPS.to_owned(), adam.n_steps().to_string().into());
    }
    let tensors: Vec<_> = stored
        .iter()
        .map(|rows| Tensor { name: &rows.name, shape: &rows.shape, data: rows.data })
        .collect();
    write_sealed(path, &tensors, notes)
}

/// The trained rows of a tensor, or one of their moments, under the name in the file.
struct StoredRows<'a> {
    name: String,
    shape: Vec<usize>,
    data: &'a [f32],
}

impl<'a> StoredRows<'a> {
    fn new(kind: &str, parameter: &Parameter, data: &'a [f32]) -> Self {
        let mut shape = parameter.shape.clone();
        shape[0] = parameter.trained_rows().len();
        Self { name: stored_name(kind, parameter), shape, data }
    }
}

/// An opened state file.
struct State {
    shard: Shard,
    table: Table,
}

impl State {
    /// Opens a file and checks its digest.
    fn open(path: &Path) -> Result<Self, Error> {
        let shard = Shard::open(path.to_path_buf()).map_err(|error| match error {
            // An empty file cannot be mapped.
            Error::Read { path, source } if source.kind() == ErrorKind::InvalidInput => {
                Error::DamagedState { path }
            }
            other => other,
        })?;
        let damaged = || Error::DamagedState { path: path.to_path_buf() };
        let table = shard.table(0).map_err(|_| damaged())?;
        if is_whole(&shard).unwrap_or(false) { Ok(Self { shard, table }) } else { Err(damaged()) }
    }

    fn read_values(&self, parameters: &mut Parameters) -> Result<String, Error> {
        parameters.fetch()?;
        for index in 0..parameters.list().len() {
            let parameter = &parameters.list()[index];
            if parameter.is_trained() {
                let (name, range) = (stored_name("value", parameter), parameter.trained());
                self.read(&name, &mut parameters.values_mut()[range])?;
            }
        }
        self.metadata(NOTE)
    }

    fn read(&self, name: &str, out: &mut [f32]) -> Result<(), Error> {
        let stored = self.table.get(name).ok_or_else(|| self.mismatch())?;
        let bytes = &self.shard.bytes()[stored.bytes.clone()];
        if stored.dtype != Dtype::F32 || bytes.len() != size_of_val(out) {
            return Err(self.mismatch());
        }
        convert::to_f32(stored.dtype, bytes, out);
        Ok(())
    }

    fn metadata(&self, key: &str) -> Result<String, Error> {
        self.shard.metadata(key)?.ok_or_else(|| self.mismatch())
    }

    fn mismatch(&self) -> Error {
        Error::State { path: self.shard.path.clone() }
    }
}

/// Returns true if the digest of a file fits its content. Returns `None` if the file has no digest.
fn is_whole(file: &Shard) -> Option<bool> {
    let digest = file.metadata(SEAL).ok()??;
    let (bytes, sealed, unsealed) = (file.bytes(), seal_entry(&digest), seal_entry(UNSEALED));
    if sealed.len() != unsealed.len() {
        return None;
    }
    let at = bytes.windows(sealed.len()).position(|window| window == sealed.as_bytes())?;
    let mut found = DigestWriter::default();
    for part in [&bytes[..at], unsealed.as_bytes(), &bytes[at + sealed.len()..]] {
        found.write_all(part).ok()?;
    }
    Some(found.finish() == digest)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;
    use crate::device::Device;
    use crate::dropout::Dropout;
    use crate::gradients::Gradients;
    use crate::mlm::{MaskedBatch, MaskedLm, MaskedLmTape};
    use crate::optim::AdamSettings;
    use crate::params::TABLE;

    fn train(
        model: &mut MaskedLm,
        adam: &mut Adam,
        steps: std::ops::Range<u64>,
    ) -> Result<(), Error> {
        let config = model.config().clone();
        let mut batch = MaskedBatch::default();
        batch.sentences.push(&[0, 10, 4, 12, 2], 0);
        batch.positions.push(2);
        batch.originals.push(11);
        let mut tape = MaskedLmTape::for_training(&config);
        let mut gradients = Gradients::new(model.parameters()).unwrap();
        for step in steps {
            gradients.clear();
            let dropout = Dropout::new(&config, 7, step);
            let cpu = Device::cpu(1);
            model.accumulate(&cpu, &batch, 1.0, dropout, &mut tape, &mut gradients)?;
            adam.step(&Device::cpu(1), 1e-2, model.parameters_mut(), &mut gradients)?;
        }
        Ok(())
    }

    fn new(freezes: bool) -> (MaskedLm, Adam) {
        let config = Config {
            vocab_size: 50,
            hidden_size: 16,
            n_layers: 1,
            n_heads: 2,
            intermediate_size: 8,
            max_position_embeddings: 12,
            ..Config::default()
        };
        let mut model = MaskedLm::random(&config, 1).unwrap();
        model.parameters_mut().freeze(|name| freezes && name == TABLE);
        let adam = Adam::new(model.parameters(), AdamSettings::default()).unwrap();
        (model, adam)
    }

    #[test]
    fn a_restored_training_continues_to_the_same_bytes() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("state.safetensors");
        for freezes in [false, true] {
            let (mut model, mut adam) = new(freezes);
            train(&mut model, &mut adam, 0..3).unwrap();
            adam.save(model.parameters(), &path, "{\"at\": 3}").unwrap();
            train(&mut model, &mut adam, 3..6).unwrap();

            let (mut again, mut other) = new(freezes);
            assert_eq!(other.restore(again.parameters_mut(), &path).unwrap(), "{\"at\": 3}");
            train(&mut again, &mut other, 3..6).unwrap();
            assert_eq!(again.parameters().values(), model.parameters().values());
        }
    }

    #[test]
    fn a_file_of_another_training_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("state.safetensors");
        let (mut model, mut adam) = new(true);
        model.parameters().save_trained(&path, "").unwrap();
        assert!(matches!(adam.restore(model.parameters_mut(), &path), Err(Error::State { .. })));
        let (mut whole, _) = new(false);
        assert!(matches!(whole.parameters_mut().restore_trained(&path), Err(Error::State { .. })));
        assert_eq!(model.parameters_mut().restore_trained(&path).unwrap(), "");
    }

    #[test]
    fn every_flipped_bit_and_every_truncation_is_found() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("state.safetensors");
        let (mut model, mut adam) = new(true);
        adam.save(model.parameters(), &path, "a = 1").unwrap();
        let whole = std::fs::read(&path).unwrap();
        let mut refused = |bytes: &[u8]| {
            std::fs::write(&path, bytes).unwrap();
            let restored = adam.restore(model.parameters_mut(), &path);
            matches!(restored, Err(Error::DamagedState { .. }))
        };
        assert!(!refused(&whole));
        // Every bit of the length and the header, and some of the tensors.
        let len = u64::from_le_bytes(whole[..8].try_into().unwrap());
        let header = 8 + usize::try_from(len).unwrap();
        for at in (0..header).chain((header..whole.len()).step_by(997)) {
            let mut flipped = whole.clone();
            flipped[at] ^= 1 << (at % 8);
            assert!(refused(&flipped), "byte {at}");
        }
        for len in [0, 7, 8, header, whole.len() - 1] {
            assert!(refused(&whole[..len]), "{len} bytes");
        }
    }
}
