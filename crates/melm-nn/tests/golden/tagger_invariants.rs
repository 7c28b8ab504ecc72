//! Invariants of the tagger that hold for any parameters.

use crate::support::{Cpu, Device, RELATIVE, assert_close};
use crate::tagger::TaggerBench;
use crate::tiny::is_exactly_zero;
use melm_nn::Error;
use melm_nn::config::Config;
use melm_nn::crf::AllowedTransitions;
use melm_nn::dropout::Dropout;
use melm_nn::isa::{Isa, IsaKind};
use melm_nn::optim::{Adam, AdamSettings};
use melm_nn::params::TABLE;
use melm_nn::tagger::{HeadKind, TaggedBatch, Tagger, TaggerSettings, Tagging};
use melm_nn::weights::Checkpoint;

const KINDS: [HeadKind; 2] = [HeadKind::Linear, HeadKind::Crf];

pub(crate) fn config() -> Config {
    Config {
        vocab_size: 101,
        hidden_size: 24,
        n_layers: 2,
        n_heads: 3,
        intermediate_size: 40,
        max_position_embeddings: 40,
        ..Config::default()
    }
}

/// The transitions between the tags O, B and I: an I must follow a B or an I.
fn allowed() -> AllowedTransitions {
    AllowedTransitions::new(3, |from, to| to != Some(2) || matches!(from, Some(1 | 2)))
}

/// Returns a batch with one sentence for each key in `order`. Lengths differ, and all tag sequences are allowed.
pub(crate) fn batch(order: &[u64]) -> TaggedBatch {
    let mut batch = TaggedBatch::default();
    for key in order {
        let n = 5 + (key * 7) % 23;
        let pieces: Vec<u32> =
            (0..n).map(|i| u32::try_from(2 + (key * 31 + i * i * 17) % 99).unwrap()).collect();
        let firsts: Vec<_> = (1..pieces.len() - 1).step_by(2).collect();
        let tags: Vec<_> = (0..).zip(&firsts).map(|(i, _)| (i + u32::from(*key > 3)) % 3).collect();
        let tags = if tags[0] == 2 { vec![0; tags.len()] } else { tags };
        batch.push(*key, &pieces, &firsts, &tags);
    }
    batch
}

/// Returns a CRF tagger that allows only the transitions of [`allowed`].
pub(crate) fn constrained(device: Device) -> TaggerBench {
    constrained_with(&config(), device)
}

/// Returns the tagger of [`constrained`] for another configuration.
pub(crate) fn constrained_with(config: &Config, device: Device) -> TaggerBench {
    bench_with(config, HeadKind::Crf, Some(allowed()), device)
}

fn bench(
    kind: HeadKind,
    allowed: Option<AllowedTransitions>,
    device: impl Into<Device>,
) -> TaggerBench {
    bench_with(&config(), kind, allowed, device)
}

/// Returns a tagger whose weights are so large that finite differences of the loss exceed the rounding errors.
fn bench_with(
    config: &Config,
    kind: HeadKind,
    allowed: Option<AllowedTransitions>,
    device: impl Into<Device>,
) -> TaggerBench {
    let settings = TaggerSettings { n_tags: 3, kind, allowed };
    let mut bench = TaggerBench::new(Tagger::random(config, settings, 5).unwrap(), device);
    for name in bench.names() {
        let values = bench.model.parameters_mut().get_mut(&name).unwrap();
        for (index, value) in (0_u8..).zip(values.iter_mut().take(9)) {
            if name.starts_with("crf.") {
                *value = f32::from(index % 5) / 4.0 - 0.5;
            }
        }
        if name.ends_with("dense.weight") || name.contains("self.") || name.contains("classifier") {
            for value in values {
                *value *= 8.0;
            }
        }
    }
    bench
}

/// Trains for two steps with dropout, clipping and micro-batches. Returns the bits of all parameters.
fn trained(kind: HeadKind, cpu: Cpu) -> Vec<u32> {
    let mut bench = bench(kind, Some(allowed()), cpu);
    let settings =
        AdamSettings { max_norm: Some(0.3), weight_decay: 0.01, ..AdamSettings::default() };
    let mut adam = Adam::new(bench.model.parameters(), settings).unwrap();
    for step in 0..2 {
        bench.gradients.clear();
        for order in [&[1, 2, 3, 4, 5, 6][..], &[7, 8]] {
            bench.accumulate(&batch(order), 0.1, Dropout::new(&config(), 1, step));
        }
        let TaggerBench { device, model, gradients, .. } = &mut bench;
        adam.step(device, 1e-2, model.parameters_mut(), gradients).unwrap();
    }
    let parameters = bench.model.parameters();
    let names = bench.names();
    names.iter().flat_map(|name| parameters.get(name).unwrap()).map(|x| x.to_bits()).collect()
}

#[test]
fn training_gives_the_same_bits_with_one_two_and_five_threads() {
    for kind in [IsaKind::Avx512, IsaKind::Avx2, IsaKind::Scalar] {
        let Some(isa) = Isa::from_kind(kind) else { continue };
        for head in KINDS {
            let one = trained(head, Cpu::with_isa(1, isa));
            assert_eq!(one, trained(head, Cpu::with_isa(2, isa)));
            assert_eq!(one, trained(head, Cpu::with_isa(5, isa)));
        }
    }
}

/// No library implements the same dropout and constraints. Gradients are therefore compared with finite differences of
/// the loss.
#[test]
fn gradients_with_dropout_equal_difference_quotients() {
    let (dropout, batch) = (Dropout::new(&config(), 2, 2), batch(&[3, 1, 6]));
    for (kind, allowed) in [(KINDS[0], None), (KINDS[1], None), (KINDS[1], Some(allowed()))] {
        let mut base = bench(kind, allowed.clone(), Cpu::new(2));
        base.accumulate(&batch, 1.0, dropout);
        for name in base.names().iter().filter(|name| !is_exactly_zero(name)) {
            let gradient = base.gradient(name);
            // Each parameter moves along the sign of its gradient, so the slope is the sum of the absolute values.
            let slope: f64 = gradient.iter().map(|g| f64::from(g.abs())).sum();
            assert!(slope > 1e-3, "{name}: {slope}");
            #[expect(clippy::cast_possible_truncation, reason = "a step need not be exact")]
            let step = (0.02 / slope) as f32;
            let loss_at = |sign: f32| {
                let mut other = bench(kind, allowed.clone(), Cpu::new(2));
                let values = other.model.parameters_mut().get_mut(name).unwrap();
                for (w, g) in values.iter_mut().zip(&gradient) {
                    *w += sign * step * g.signum() * f32::from(u8::from(*g != 0.0));
                }
                other.accumulate(&batch, 1.0, dropout)
            };
            let quotient = (loss_at(1.0) - loss_at(-1.0)) / (2.0 * f64::from(step));
            let is_near = (quotient - slope).abs() < 0.02 * slope;
            assert!(is_near, "{kind:?} {name}: {quotient}, gradient says {slope}");
        }
    }
}

#[test]
fn classifier_dropout_changes_only_the_inputs_of_the_classifier() {
    let mut config = Config { hidden_dropout: 0.0, attention_dropout: 0.0, ..config() };
    let batch = batch(&[1, 2]);
    let mut losses = Vec::new();
    for rate in [0.0, 0.5] {
        config.extra.insert("classifier_dropout".to_owned(), rate.into());
        let mut bench = bench(HeadKind::Linear, None, Cpu::new(2));
        losses.push(bench.accumulate(&batch, 1.0, Dropout::NONE));
        let hidden = bench.tape.hidden().to_vec();
        losses.push(bench.accumulate(&batch, 1.0, Dropout::new(&config, 3, 1)));
        assert_eq!(hidden, bench.tape.hidden());
    }
    let bits: Vec<_> = losses.iter().map(|loss| loss.to_bits()).collect();
    assert!(bits[..3].iter().all(|loss| *loss == bits[0]), "{losses:?}");
    assert!((losses[3] - losses[0]).abs() > 1e-3, "{losses:?}");
}

#[test]
fn a_crf_with_zero_scores_equals_the_linear_head() {
    let batch = batch(&[1, 2, 5]);
    let mut benches = KINDS.map(|kind| bench(kind, None, Cpu::new(2)));
    for name in ["crf.start_transitions", "crf.transitions", "crf.end_transitions"] {
        benches[1].model.parameters_mut().get_mut(name).unwrap().fill(0.0);
    }
    let losses = benches.each_mut().map(|bench| bench.accumulate(&batch, 1.0, Dropout::NONE));
    assert!((losses[0] - losses[1]).abs() < 1e-9 * losses[0], "{losses:?}");
    let found = benches.each_mut().map(|bench| bench.gradient("classifier.weight"));
    assert_close("classifier.weight", &found[1], &found[0], 1e-5);
}

#[test]
fn micro_batches_add_up_to_the_batch() {
    for kind in KINDS {
        let mut benches = [(); 2].map(|()| bench(kind, Some(allowed()), Cpu::new(2)));
        let dropout = Dropout::new(&config(), 4, 1);
        let whole = benches[0].accumulate(&batch(&[1, 2, 5, 3]), 0.5, dropout);
        let parts = [&[3, 1][..], &[5], &[2]].map(|order| {
            let batch = batch(order);
            benches[1].accumulate(&batch, 0.5, dropout)
        });
        assert!((whole - parts.iter().sum::<f64>()).abs() < 1e-4 * whole, "{whole} {parts:?}");
        for name in benches[0].names().iter().filter(|name| !is_exactly_zero(name)) {
            let [whole, parts] = benches.each_mut().map(|bench| bench.gradient(name));
            assert_close(name, &parts, &whole, RELATIVE);
        }
    }
}

#[test]
fn a_frozen_table_stays_and_the_other_parameters_change() {
    for kind in KINDS {
        let mut bench = bench(kind, None, Cpu::new(2));
        assert_eq!(bench.model.parameters_mut().freeze(|name| name == TABLE), 1);
        let before: Vec<_> = bench
            .names()
            .into_iter()
            .map(|name| (bench.model.parameters().get(&name).unwrap().to_vec(), name))
            .collect();
        bench.accumulate(&batch(&[1, 2]), 1.0, Dropout::NONE);
        let mut adam = Adam::new(bench.model.parameters(), AdamSettings::default()).unwrap();
        let TaggerBench { device, model, gradients, .. } = &mut bench;
        adam.step(device, 1e-2, model.parameters_mut(), gradients).unwrap();
        for (values, name) in before {
            let is_same = model.parameters().get(&name).unwrap() == values;
            assert_eq!(is_same, name == TABLE, "{name}");
        }
    }
}

#[test]
fn decoded_tags_are_allowed_and_probabilities_sum_to_one() {
    for kind in KINDS {
        let mut bench = bench(kind, Some(allowed()), Cpu::new(1));
        // Without constraints, I would be the best tag of every token.
        let emissions = [0.0, -1.0, 5.0].repeat(4);
        let mut out = Tagging::default();
        bench.model.decode(&emissions, &mut bench.tape, &mut out).unwrap();
        assert_eq!(out.tags, [1, 2, 2, 2], "{kind:?}");
        assert!(out.log_probability < 0.0 && out.log_probability > -1.0);
        for (token, row) in out.probabilities.chunks_exact(3).enumerate() {
            assert!((row.iter().sum::<f32>() - 1.0).abs() < 1e-6, "{row:?}");
            assert_eq!(row[2] == 0.0, token == 0, "{row:?}");
        }
    }
}

#[test]
fn a_saved_tagger_opens_unchanged() {
    for kind in KINDS {
        let bench = bench(kind, None, Cpu::new(1));
        let folder = tempfile::tempdir().unwrap();
        let names = ["O", "B-PER", "I-PER"].map(str::to_owned);
        bench.model.save(folder.path(), &names).unwrap();
        assert!(matches!(
            bench.model.save(folder.path(), &names[..2]),
            Err(Error::TagNames { n_names: 2, n_tags: 3 })
        ));
        let saved = Checkpoint::open(folder.path()).unwrap();
        let settings = TaggerSettings::from_checkpoint(&saved).unwrap();
        assert_eq!(&settings, bench.model.settings());
        let extra = &saved.config().extra;
        assert_eq!(extra["id2label"]["2"], "I-PER");
        assert_eq!(extra["label2id"]["B-PER"], 1);
        assert_eq!(extra["architectures"][0], "XLMRobertaForTokenClassification");
        let again = Tagger::open(&saved, settings, 77).unwrap();
        for name in bench.names() {
            let values = |model: &Tagger| model.parameters().get(&name).unwrap().to_vec();
            assert_eq!(values(&again), values(&bench.model), "{name}");
        }
        let other = TaggerSettings { n_tags: 4, kind, allowed: None };
        assert!(matches!(Tagger::open(&saved, other, 0), Err(Error::Shape { .. })));
    }
}

#[test]
fn batches_that_do_not_fit_are_errors_and_leave_no_gradient() {
    let mut bench = bench(HeadKind::Crf, Some(allowed()), Cpu::new(1));
    for (pieces, firsts, tags) in [
        (vec![101], vec![0], vec![0]),
        (vec![5; 39], vec![0], vec![0]),
        (vec![5; 3], vec![3], vec![0]),
        (vec![5; 3], vec![0, 1], vec![0]),
        (vec![5; 3], vec![1], vec![3]),
        (vec![5; 3], vec![0, 1], vec![0, 2]),
    ] {
        let mut batch = batch(&[1]);
        batch.push(9, &pieces, &firsts, &tags);
        let TaggerBench { device, model, tape, gradients } = &mut bench;
        let outcome = model.accumulate(device, &batch, 1.0, Dropout::NONE, tape, gradients);
        assert!(outcome.is_err(), "{batch:?}");
        let mut names = model.parameters().list().iter().map(|p| &p.name);
        assert!(names.all(|name| gradients.get(model.parameters(), name).is_none()));
    }
}
