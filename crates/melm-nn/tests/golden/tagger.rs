//! Compares the tagger with transformers and pytorch-crf. `tools/make_golden_tagger.py` computed the expected numbers.

use crate::support::{Cpu, Device, Golden, Gradients, RELATIVE, assert_close, largest, testdata};
use crate::tiny::is_exactly_zero;
use melm_nn::dropout::Dropout;
use melm_nn::isa::{Isa, IsaKind};
use melm_nn::optim::{Adam, AdamSettings};
use melm_nn::tagger::{HeadKind, TaggedBatch, Tagger, TaggerSettings, TaggerTape, Tagging};
use melm_nn::weights::Checkpoint;

const KINDS: [(&str, HeadKind); 2] = [("linear", HeadKind::Linear), ("crf", HeadKind::Crf)];

fn golden() -> Golden {
    Golden::read("../tagger/golden.safetensors")
}

fn batch(golden: &Golden, index: usize) -> TaggedBatch {
    let part = |name: &str| golden.integers(&format!("batch{index}.{name}"));
    let (mut pieces, mut firsts, mut tags) = (part("pieces"), part("firsts"), part("tags"));
    let mut batch = TaggedBatch::default();
    for (key, (n_pieces, n_tokens)) in (0..).zip(part("n_pieces").iter().zip(part("n_tokens"))) {
        let (own_pieces, own_firsts, own_tags);
        (own_pieces, pieces) = pieces.split_at(*n_pieces as usize);
        (own_firsts, firsts) = firsts.split_at(*n_tokens as usize);
        (own_tags, tags) = tags.split_at(*n_tokens as usize);
        let own_firsts: Vec<_> = own_firsts.iter().map(|first| *first as usize).collect();
        batch.push(key, own_pieces, &own_firsts, own_tags);
    }
    batch
}

/// A tagger, its device, and the buffers that a training step needs.
pub(crate) struct TaggerBench {
    pub(crate) device: Device,
    pub(crate) model: Tagger,
    pub(crate) tape: TaggerTape,
    pub(crate) gradients: Gradients,
}

impl TaggerBench {
    pub(crate) fn new(model: Tagger, device: impl Into<Device>) -> Self {
        let tape = TaggerTape::for_training(model.config());
        let gradients = Gradients::new(model.parameters()).unwrap();
        Self { device: device.into(), model, tape, gradients }
    }

    fn open(kind: HeadKind, device: impl Into<Device>) -> Self {
        let checkpoint = Checkpoint::open(&testdata("../tagger/model")).unwrap();
        let settings =
            TaggerSettings { kind, ..TaggerSettings::from_checkpoint(&checkpoint).unwrap() };
        // The checkpoint contains all tensors, so the seed must have no effect.
        Self::new(Tagger::open(&checkpoint, settings, 99).unwrap(), device)
    }

    /// Accumulates the gradient of one micro-batch. Returns the sum of the losses.
    pub(crate) fn accumulate(&mut self, batch: &TaggedBatch, weight: f32, dropout: Dropout) -> f64 {
        let Self { device, model, tape, gradients } = self;
        model.accumulate(device, batch, weight, dropout, tape, gradients).unwrap()
    }

    /// Accumulates the gradient of the mean loss over tokens (softmax) or sentences (CRF), as torch does. Returns the
    /// mean loss.
    fn mean(&mut self, batch: &TaggedBatch) -> f32 {
        let n = match self.model.settings().kind {
            HeadKind::Linear => batch.n_tokens(),
            HeadKind::Crf => batch.sentences().n_sentences(),
        };
        let sum = self.accumulate(batch, 1.0 / n as f32, Dropout::NONE);
        #[expect(clippy::cast_possible_truncation, reason = "the golden file's precision")]
        let mean = (sum / n as f64) as f32;
        mean
    }

    /// Returns the gradient of a tensor. The gradient of the embedding table, which is not stored as one matrix, is
    /// computed in full.
    pub(crate) fn gradient(&mut self, name: &str) -> Vec<f32> {
        let table = self.gradients.fetch(&self.device, self.model.parameters()).unwrap();
        if self.model.parameters().list().last().is_some_and(|table| table.name == name) {
            return table;
        }
        let found = self.gradients.get(self.model.parameters(), name);
        found.unwrap_or_else(|| panic!("`{name}` has no gradient")).to_vec()
    }

    pub(crate) fn names(&self) -> Vec<String> {
        self.model.parameters().list().iter().map(|p| p.name.clone()).collect()
    }
}

fn check_gradients(name: &str, kind: HeadKind, device: Device, relative: f32) {
    let golden = golden();
    let mut bench = TaggerBench::open(kind, device);
    let loss = bench.mean(&batch(&golden, 0));
    assert_close("loss", &[loss], golden.floats(&format!("{name}.loss")), relative);
    let prefix = format!("{name}.gradient.");
    let wanted = |parameter: &str| golden.floats(&format!("{prefix}{parameter}"));
    let scale = golden.under(&prefix).map(|n| largest(wanted(n))).fold(0.0, f32::max);
    for parameter in golden.under(&prefix) {
        let found = bench.gradient(parameter);
        if is_exactly_zero(parameter) {
            assert!(largest(&found) < 0.01 * relative * scale, "{parameter}");
        } else {
            assert_close(parameter, &found, wanted(parameter), relative);
        }
    }
    assert_eq!(golden.under(&prefix).count(), bench.names().len());
}

#[test]
fn loss_and_gradients_equal_torch_on_every_instruction_set() {
    for kind in [IsaKind::Avx512, IsaKind::Avx2, IsaKind::Gemm, IsaKind::Scalar] {
        let Some(isa) = Isa::from_kind(kind) else { continue };
        for (name, head) in KINDS {
            check_gradients(name, head, Cpu::with_isa(2, isa).into(), RELATIVE);
        }
    }
}

#[test]
fn emissions_and_best_tags_equal_torch() {
    check_emissions(&|| Device::cpu(2), RELATIVE);
}

/// Runs all checks of this file on a device.
pub(crate) fn check_all(device: &dyn Fn() -> Device, relative: f32) {
    for (name, kind) in KINDS {
        check_gradients(name, kind, device(), relative);
    }
    check_emissions(device, relative);
    check_steps(device, relative);
}

fn check_emissions(device: &dyn Fn() -> Device, relative: f32) {
    let golden = golden();
    for (name, kind) in KINDS {
        let bench = TaggerBench::open(kind, device());
        let (batch, mut emissions) = (batch(&golden, 0), Vec::new());
        let TaggerBench { device, model, .. } = &bench;
        let mut tape = TaggerTape::for_prediction(model.config());
        model.emissions(device, &batch, &mut tape, &mut emissions).unwrap();
        let wanted = golden.floats(&format!("{name}.emissions"));
        assert_close("emissions", &emissions, wanted, relative);
        let (n, mut tags, mut tagging) = (model.settings().n_tags, Vec::new(), Tagging::default());
        for sentence in 0..batch.sentences().n_sentences() {
            let tokens = batch.tokens(sentence);
            let own = &emissions[tokens.start * n..tokens.end * n];
            model.decode(own, &mut tape, &mut tagging).unwrap();
            tags.extend_from_slice(&tagging.tags);
        }
        assert_eq!(tags, golden.integers(&format!("{name}.best")), "{name}");
    }
}

#[test]
fn clipped_steps_of_adamw_equal_torch() {
    check_steps(&|| Device::cpu(2), RELATIVE);
}

fn check_steps(device: &dyn Fn() -> Device, relative: f32) {
    let golden = golden();
    for ((name, kind), max_norm) in KINDS.into_iter().zip([3.8, 19.0]) {
        let mut bench = TaggerBench::open(kind, device());
        let settings = AdamSettings {
            max_norm: Some(max_norm),
            eps: 1e-3,
            weight_decay: 0.1,
            ..AdamSettings::default()
        };
        let mut adam = Adam::new(bench.model.parameters(), settings).unwrap();
        let (mut norms, mut losses) = (Vec::new(), Vec::new());
        for index in 0..4 {
            bench.gradients.clear();
            losses.push(bench.mean(&batch(&golden, index)));
            let TaggerBench { device, model, gradients, .. } = &mut bench;
            adam.step(device, 2e-3, model.parameters_mut(), gradients).unwrap();
            #[expect(clippy::cast_possible_truncation, reason = "the golden file's precision")]
            norms.push(adam.norm().unwrap().unwrap() as f32);
        }
        assert_close("norms", &norms, golden.floats(&format!("{name}.norms")), relative);
        assert_close("losses", &losses, golden.floats(&format!("{name}.losses")), relative);
        bench.model.parameters_mut().fetch().unwrap();
        for parameter in bench.names() {
            let found = bench.model.parameters().get(&parameter).unwrap();
            let wanted = golden.floats(&format!("{name}.adamw.{parameter}"));
            assert_close(&parameter, found, wanted, relative);
        }
    }
}
