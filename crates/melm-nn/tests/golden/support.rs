//! Reads golden files and compares numbers with them.

use melm_nn::mlm::{MaskedBatch, MaskedLm, MaskedLmTape};
use melm_nn::weights::Checkpoint;
use safetensors::{Dtype, SafeTensors};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

pub(crate) use melm_nn::device::{Cpu, Device};
pub(crate) use melm_nn::gradients::Gradients;

/// The relative tolerance in all tests, except those with bf16.
pub(crate) const RELATIVE: f32 = 1e-4;

/// Tolerances for the comparison of a model with a golden file.
#[derive(Clone, Copy)]
pub(crate) struct Tolerance {
    /// The relative tolerance of the gradient of each tensor.
    pub(crate) tensor: f32,
    /// The relative tolerance of everything else: outputs, the loss, and all gradients taken together.
    pub(crate) whole: f32,
}

impl From<f32> for Tolerance {
    fn from(relative: f32) -> Self {
        Self { tensor: relative, whole: relative }
    }
}

pub(crate) fn testdata(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/nn").join(path)
}

/// A golden file: expected numbers by name.
pub(crate) struct Golden {
    floats: BTreeMap<String, Vec<f32>>,
    integers: BTreeMap<String, Vec<u32>>,
}

impl Golden {
    pub(crate) fn read(path: &str) -> Self {
        let bytes = std::fs::read(testdata(path)).unwrap();
        let (mut floats, mut integers) = (BTreeMap::new(), BTreeMap::new());
        for (name, view) in SafeTensors::deserialize(&bytes).unwrap().tensors() {
            let words = view.data().chunks_exact(4).map(|b| [b[0], b[1], b[2], b[3]]);
            match view.dtype() {
                Dtype::F32 => drop(floats.insert(name, words.map(f32::from_le_bytes).collect())),
                Dtype::I32 => drop(integers.insert(name, words.map(u32::from_le_bytes).collect())),
                other => panic!("{name} is {other:?}"),
            }
        }
        Self { floats, integers }
    }

    pub(crate) fn floats(&self, name: &str) -> &[f32] {
        self.floats.get(name).unwrap_or_else(|| panic!("no `{name}`"))
    }

    pub(crate) fn integers(&self, name: &str) -> &[u32] {
        self.integers.get(name).unwrap_or_else(|| panic!("no `{name}`"))
    }

    /// Returns the names that start with `prefix`, without the prefix.
    pub(crate) fn under<'a>(&'a self, prefix: &'a str) -> impl Iterator<Item = &'a str> {
        self.floats.keys().filter_map(move |name| name.strip_prefix(prefix))
    }

    pub(crate) fn batch(&self, index: usize) -> MaskedBatch {
        let name = |part: &str| format!("batch{index}.{part}");
        let mut batch = MaskedBatch::default();
        let mut pieces = self.integers(&name("pieces"));
        for (key, length) in (0..).zip(self.integers(&name("lengths"))) {
            let (sentence, rest) = pieces.split_at(*length as usize);
            batch.sentences.push(sentence, key);
            pieces = rest;
        }
        batch.positions = self.integers(&name("masked")).iter().map(|row| *row as usize).collect();
        batch.originals = self.integers(&name("originals")).to_vec();
        batch
    }
}

/// A model, its device, and the buffers that a training step needs.
pub(crate) struct Bench {
    pub(crate) device: Device,
    pub(crate) model: MaskedLm,
    pub(crate) tape: MaskedLmTape,
    pub(crate) gradients: Gradients,
}

impl Bench {
    pub(crate) fn open(name: &str, device: impl Into<Device>) -> Self {
        let model = MaskedLm::open(&Checkpoint::open(&testdata(name)).unwrap(), 0, 0).unwrap();
        Self::new(model, device)
    }

    pub(crate) fn new(model: MaskedLm, device: impl Into<Device>) -> Self {
        let tape = MaskedLmTape::for_training(model.config());
        let gradients = Gradients::new(model.parameters()).unwrap();
        Self { device: device.into(), model, tape, gradients }
    }

    /// Accumulates the gradient of one micro-batch. Returns the mean loss.
    pub(crate) fn accumulate(
        &mut self,
        batch: &MaskedBatch,
        weight: f32,
        dropout: melm_nn::dropout::Dropout,
    ) -> f64 {
        let Self { device, model, tape, gradients } = self;
        let sum = model.accumulate(device, batch, weight, dropout, tape, gradients).unwrap();
        sum / batch.positions.len() as f64
    }

    /// Returns the gradient of a tensor. The gradient of the embedding table, which is not stored as one matrix, is
    /// computed in full.
    pub(crate) fn gradient(&mut self, name: &str) -> Vec<f32> {
        let table = self.gradients.fetch(&self.device, self.model.parameters()).unwrap();
        if self.model.parameters().list().last().is_some_and(|table| table.name == name) {
            return table;
        }
        self.gradients
            .get(self.model.parameters(), name)
            .unwrap_or_else(|| panic!("`{name}` has no gradient"))
            .to_vec()
    }
}

pub(crate) fn largest(values: &[f32]) -> f32 {
    values.iter().fold(0.0, |most, x| most.max(x.abs()))
}

/// Returns the norm of the difference, divided by the norm of `wanted`.
pub(crate) fn relative_error(found: &[f32], wanted: &[f32]) -> f32 {
    let length = |x: &mut dyn Iterator<Item = f32>| x.map(|x| x * x).sum::<f32>().sqrt();
    let error = length(&mut found.iter().zip(wanted).map(|(a, b)| a - b));
    error / length(&mut wanted.iter().copied())
}

/// Asserts that every element differs by at most `relative` times the largest element of `wanted`. With the larger
/// tolerance of bf16, asserts only that the norm of the difference is at most `relative` times the norm of `wanted`.
pub(crate) fn assert_close(what: &str, found: &[f32], wanted: &[f32], relative: f32) {
    assert_eq!(found.len(), wanted.len(), "{what}");
    if relative > 100.0 * RELATIVE {
        let error = relative_error(found, wanted);
        assert!(error <= relative, "{what}: off by {error:.1e}");
        return;
    }
    let scale = largest(wanted);
    for (index, (found, wanted)) in found.iter().zip(wanted).enumerate() {
        // Written as `<=`, so that NaN fails.
        let is_close = (found - wanted).abs() <= relative * scale;
        assert!(is_close, "{what}[{index}]: {found}, expected {wanted} (largest {scale})");
    }
}
