//! Compares tiny random models of all families with transformers. `tools/make_golden_families.py`
//! computed the expected numbers.

use crate::cuda::{on_gpu, settings};
use crate::support::{
    Bench, Cpu, Device, Golden, RELATIVE, Tolerance, assert_close, largest, testdata,
};
use crate::tagger::TaggerBench;
use crate::tiny::{check_bench, is_exactly_zero};
use melm_nn::Error;
use melm_nn::cuda::Precision;
use melm_nn::dropout::Dropout;
use melm_nn::isa::{Isa, IsaKind};
use melm_nn::mlm::MaskedLm;
use melm_nn::packed::Packed;
use melm_nn::params::TABLE;
use melm_nn::tagger::{TaggedBatch, Tagger, TaggerSettings, TaggerTape};
use melm_nn::weights::Checkpoint;
use safetensors::SafeTensors;
use std::collections::BTreeMap;
use std::path::Path;

/// The families with a masked-LM head.
const WITH_HEAD: [&str; 4] = ["bert", "distilbert", "camembert", "modernbert"];
pub(crate) const ALL: [&str; 5] = ["bert", "distilbert", "camembert", "electra", "modernbert"];

pub(crate) fn folder(name: &str) -> std::path::PathBuf {
    testdata(&format!("../families/{name}"))
}

pub(crate) fn golden_file(family: &str) -> String {
    format!("../families/{family}.safetensors")
}

pub(crate) fn masked_lm(folder: &Path) -> MaskedLm {
    MaskedLm::open(&Checkpoint::open(folder).unwrap(), 0, 0).unwrap()
}

pub(crate) fn tagger(folder: &Path) -> Tagger {
    let checkpoint = Checkpoint::open(folder).unwrap();
    let settings = TaggerSettings::from_checkpoint(&checkpoint).unwrap();
    Tagger::open(&checkpoint, settings, 99).unwrap()
}

pub(crate) fn check_masked_lm(family: &str, device: Device, tolerance: impl Into<Tolerance>) {
    let mut bench = Bench::new(masked_lm(&folder(&format!("{family}.lm"))), device);
    check_bench(&golden_file(family), &mut bench, tolerance);
}

/// The sentences of a golden file, with a tag for every piece.
pub(crate) fn tagged_batch(golden: &Golden) -> TaggedBatch {
    let sentences = golden.batch(0).sentences;
    let mut batch = TaggedBatch::default();
    for (key, sentence) in (0..).zip(0..sentences.n_sentences()) {
        let rows = sentences.rows(sentence);
        let firsts: Vec<_> = (0..rows.len()).collect();
        let (pieces, tags) = (&sentences.pieces()[rows.clone()], &golden.integers("tags")[rows]);
        batch.push(key, pieces, &firsts, tags);
    }
    batch
}

/// Compares the loss, the emissions and all gradients of a tagger in which every piece is a token.
pub(crate) fn check_tagger(family: &str, device: Device, tolerance: impl Into<Tolerance>) {
    let Tolerance { tensor, whole: relative } = tolerance.into();
    let golden = Golden::read(&golden_file(family));
    let batch = tagged_batch(&golden);
    let model = tagger(&folder(&format!("{family}.tagger")));
    let (mut tape, mut emissions) = (TaggerTape::for_prediction(model.config()), Vec::new());
    model.emissions(&device, &batch, &mut tape, &mut emissions).unwrap();
    assert_close("emissions", &emissions, golden.floats("tagger.emissions"), relative);
    let mut bench = TaggerBench::new(model, device);
    let n = batch.n_tokens();
    let sum = bench.accumulate(&batch, 1.0 / n as f32, Dropout::NONE);
    #[expect(clippy::cast_possible_truncation, reason = "the golden file's precision")]
    assert_close("loss", &[(sum / n as f64) as f32], golden.floats("tagger.loss"), relative);
    let wanted = |name: &str| golden.floats(&format!("tagger.gradient.{name}"));
    let names: Vec<_> = golden.under("tagger.gradient.").collect();
    let scale = names.iter().map(|name| largest(wanted(name))).fold(0.0, f32::max);
    let mut all = (Vec::new(), Vec::new());
    for name in &names {
        let found = bench.gradient(name);
        if is_exactly_zero(name) {
            assert!(largest(&found) < 0.05 * relative * scale, "{name}");
        } else {
            assert_close(name, &found, wanted(name), tensor);
            all.0.extend(found);
            all.1.extend_from_slice(wanted(name));
        }
    }
    assert_close("all gradients", &all.0, &all.1, relative);
    assert_eq!(names.len(), bench.names().len());
}

#[test]
fn masked_lms_and_taggers_equal_transformers_on_every_instruction_set() {
    for kind in [IsaKind::Avx512, IsaKind::Avx2, IsaKind::Scalar] {
        let Some(isa) = Isa::from_kind(kind) else { continue };
        for family in WITH_HEAD {
            check_masked_lm(family, Cpu::with_isa(2, isa).into(), RELATIVE);
        }
        for family in ALL {
            check_tagger(family, Cpu::with_isa(2, isa).into(), RELATIVE);
        }
    }
}

#[test]
fn masked_lms_and_taggers_equal_transformers_on_the_gpu() {
    on_gpu(&settings(Precision::F32), |device| {
        for family in WITH_HEAD {
            check_masked_lm(family, device(), RELATIVE);
        }
        for family in ALL {
            check_tagger(family, device(), RELATIVE);
        }
    });
}

/// If the head reads rows several times, the last layer has more rows than the batch.
#[test]
fn repeated_masked_positions_count_as_often_as_they_are_listed() {
    for family in WITH_HEAD {
        let once = Golden::read(&golden_file(family)).batch(0);
        let n_times = once.sentences.n_rows() / once.positions.len() + 2;
        let mut repeated = once.clone();
        repeated.positions = once.positions.repeat(n_times);
        repeated.originals = once.originals.repeat(n_times);
        let mut benches = [(); 2]
            .map(|()| Bench::new(masked_lm(&folder(&format!("{family}.lm"))), Device::cpu(2)));
        // The first pass leaves values in the working memory.
        for _ in 0..2 {
            for (bench, batch) in benches.iter_mut().zip([&once, &repeated]) {
                bench.gradients.clear();
                bench.accumulate(batch, 1.0 / batch.positions.len() as f32, Dropout::NONE);
            }
        }
        let names: Vec<_> =
            benches[0].model.parameters().list().iter().map(|p| p.name.clone()).collect();
        for name in names.iter().filter(|name| !is_exactly_zero(name)) {
            let [wanted, found] = benches.each_mut().map(|bench| bench.gradient(name));
            assert_close(&format!("{family}: {name}"), &found, &wanted, RELATIVE);
        }
    }
}

/// Writes a copy of a model folder with other names of tensors. A tensor is left out if `rename` returns `None`.
fn copy_renamed(from: &Path, to: &Path, rename: impl Fn(&str) -> Option<String>) {
    let bytes = std::fs::read(from.join("model.safetensors")).unwrap();
    let stored = SafeTensors::deserialize(&bytes).unwrap();
    let renamed: Vec<_> = stored
        .tensors()
        .into_iter()
        .filter_map(|(name, view)| Some((rename(&name)?, view)))
        .collect();
    std::fs::create_dir_all(to).unwrap();
    std::fs::copy(from.join("config.json"), to.join("config.json")).unwrap();
    let bytes = safetensors::serialize(renamed, None).unwrap();
    std::fs::write(to.join("model.safetensors"), bytes).unwrap();
}

#[test]
fn old_names_of_bert_are_understood() {
    let dir = tempfile::tempdir().unwrap();
    copy_renamed(&folder("bert.lm"), dir.path(), |name| {
        let name = name.replace("LayerNorm.weight", "LayerNorm.gamma");
        let name = name.replace("LayerNorm.bias", "LayerNorm.beta");
        Some(name.replace("cls.predictions.bias", "cls.predictions.decoder.bias"))
    });
    let mut bench = Bench::new(masked_lm(dir.path()), Device::cpu(1));
    check_bench(&golden_file("bert"), &mut bench, RELATIVE);
}

#[test]
fn a_bare_encoder_has_no_masked_lm_head_but_can_be_tagged_with() {
    for family in ALL {
        let dir = tempfile::tempdir().unwrap();
        copy_renamed(&folder(&format!("{family}.tagger")), dir.path(), |name| {
            let prefix = match family {
                "camembert" => "roberta",
                "modernbert" => "model",
                other => other,
            };
            Some(name.strip_prefix(prefix)?.strip_prefix('.')?.to_owned())
        });
        let checkpoint = Checkpoint::open(dir.path()).unwrap();
        assert!(!checkpoint.has_masked_lm_head());
        let error = MaskedLm::open(&checkpoint, 0, 1).err().unwrap();
        assert!(matches!(error, Error::NoMaskedLmHead { .. }), "{error}");
        let message = error.to_string();
        assert!(message.contains("has no masked-LM head"), "{message}");
        let settings =
            TaggerSettings { n_tags: 3, kind: melm_nn::tagger::HeadKind::Crf, allowed: None };
        let new = Tagger::open(&checkpoint, settings, 1).unwrap();
        let old = tagger(&folder(&format!("{family}.tagger")));
        let table = |model: &Tagger| model.parameters().get(TABLE).unwrap().to_vec();
        assert_eq!(table(&new), table(&old));
    }
}

#[test]
fn tensors_are_frozen_by_role_in_every_family() {
    for family in WITH_HEAD {
        let mut model = masked_lm(&folder(&format!("{family}.lm")));
        let freeze = |model: &mut MaskedLm, prefix: &str| {
            model.parameters_mut().freeze(|name| name.starts_with(prefix))
        };
        assert_eq!(freeze(&mut model, "roberta.embeddings.word_embeddings"), 1, "{family}");
        let table = model.parameters().list().last().unwrap();
        assert!(table.is_frozen && table.name.contains(".embeddings."));
        // ModernBERT has no biases, one projection for query, key and value, and no norm at the start of layer 0.
        let n_wanted = if family == "modernbert" { [5, 6, 3] } else { [16, 16, 5] };
        let prefixes = ["roberta.encoder.layer.0.", "roberta.encoder.layer.1.", "lm_head."];
        let n_frozen = prefixes.map(|prefix| freeze(&mut model, prefix));
        assert_eq!(n_frozen, n_wanted, "{family}");
    }
    let mut model = masked_lm(&folder("distilbert.lm"));
    let own = |name: &str| name.starts_with("distilbert.transformer.layer.1.ffn.");
    assert_eq!(model.parameters_mut().freeze(own), 4);
}

/// Asserts that two folders have the same configuration and the same tensors.
fn assert_same_model(saved: &Path, original: &Path) {
    let tensors = |dir: &Path| {
        let bytes = std::fs::read(dir.join("model.safetensors")).unwrap();
        let stored = SafeTensors::deserialize(&bytes).unwrap();
        let all = stored.iter().map(|(name, view)| (name.to_owned(), view.data().to_vec()));
        all.collect::<BTreeMap<_, _>>()
    };
    let (found, wanted) = (tensors(saved), tensors(original));
    assert_eq!(found.keys().collect::<Vec<_>>(), wanted.keys().collect::<Vec<_>>());
    assert!(found == wanted, "{}", original.display());
    let config = |dir: &Path| -> serde_json::Value {
        let text = std::fs::read_to_string(dir.join("config.json")).unwrap();
        serde_json::from_str(&text).unwrap()
    };
    assert_eq!(config(saved), config(original));
}

/// transformers wrote the original folders, so it opens equal ones with the same logits.
#[test]
fn saved_folders_equal_those_of_transformers() {
    let dir = tempfile::tempdir().unwrap();
    let names: Vec<_> = (0..5).map(|number| format!("LABEL_{number}")).collect();
    for family in ALL {
        let from = folder(&format!("{family}.tagger"));
        tagger(&from).save(dir.path(), &names).unwrap();
        assert_same_model(dir.path(), &from);
    }
    for family in WITH_HEAD {
        let from = folder(&format!("{family}.lm"));
        masked_lm(&from).save(dir.path()).unwrap();
        assert_same_model(dir.path(), &from);
    }
}

/// Adds a copy of a piece that no mask asks for, and uses the copy in the input. The output bias of the copy is so low
/// that it is never predicted. The loss must stay the same, and the gradients of the two rows must sum to the gradient of
/// the piece.
#[test]
fn rows_of_added_pieces_are_trained_in_every_family() {
    for family in WITH_HEAD {
        let golden = Golden::read(&golden_file(family));
        let batch = golden.batch(0);
        let used = batch.sentences.pieces();
        let piece = *used.iter().find(|piece| !batch.originals.contains(piece)).unwrap();
        let checkpoint = Checkpoint::open(&folder(&format!("{family}.lm"))).unwrap();
        let mut model = MaskedLm::open(&checkpoint, 1, 7).unwrap();
        let (copy, width) = (model.config().vocab_size - 1, model.config().hidden_size);
        assert_eq!(copy, checkpoint.config().vocab_size);
        let row = |piece: usize| piece * width..(piece + 1) * width;
        let table = model.parameters_mut().get_mut(TABLE).unwrap();
        table.copy_within(row(piece as usize), row(copy).start);
        model.parameters_mut().get_mut("lm_head.bias").unwrap()[copy] = -1e4;
        let mut changed = batch.clone();
        changed.sentences = Packed::default();
        for sentence in 0..batch.sentences.n_sentences() {
            let pieces = &batch.sentences.pieces()[batch.sentences.rows(sentence)];
            let replaced = |p: &u32| if *p == piece { u32::try_from(copy).unwrap() } else { *p };
            changed.sentences.push(&pieces.iter().map(replaced).collect::<Vec<_>>(), 0);
        }
        let mut bench = Bench::new(model, Device::cpu(2));
        let loss = bench.accumulate(&changed, 1.0 / batch.positions.len() as f32, Dropout::NONE);
        #[expect(clippy::cast_possible_truncation, reason = "the golden file's precision")]
        assert_close("loss", &[loss as f32], golden.floats("loss"), RELATIVE);
        let name = bench.model.parameters().list().last().unwrap().name.clone();
        let (found, wanted) = (bench.gradient(&name), golden.floats(&format!("gradient.{name}")));
        assert!(largest(&found[row(copy)]) > 1e-3 * largest(wanted), "{family}");
        let mut sum = found[..wanted.len()].to_vec();
        for (sum, added) in sum[row(piece as usize)].iter_mut().zip(&found[row(copy)]) {
            *sum += added;
        }
        assert_close("table", &sum, wanted, RELATIVE);
    }
}
