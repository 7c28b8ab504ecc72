//! Compares the encoder-decoder with mBART in transformers. Expected numbers: `tools/make_golden_seq2seq.py`.

use crate::support::{Cpu, Device, Golden, Gradients, RELATIVE, assert_close, testdata};
use melm_nn::dropout::{Dropout, DropoutRates};
use melm_nn::isa::{Isa, IsaKind};
use melm_nn::optim::{Adam, AdamSettings};
use melm_nn::packed::Packed;
use melm_nn::seq2seq::{
    BeamSearch, EarlyStopping, GenerationConfig, SHARED, Seq2Seq, Seq2SeqBatch, Seq2SeqTape,
};

const KINDS: [&str; 2] = ["mbart", "mbart50"];
const MAX_LENGTH: usize = 14;
const LANGUAGE: u32 = 37;
/// The number of beams, the length penalty, the early stopping, the forced first piece and the forced last piece.
type Search = (usize, f64, EarlyStopping, Option<u32>, Option<u32>);

/// The settings of beam search in `tools/make_golden_seq2seq.py`.
const SEARCHES: [Search; 6] = [
    (1, 1.0, EarlyStopping::Heuristic, None, None),
    (4, 1.0, EarlyStopping::Heuristic, None, None),
    (4, 1.0, EarlyStopping::WhenFull, Some(LANGUAGE), Some(2)),
    (3, 0.0, EarlyStopping::Never, None, Some(2)),
    (5, 2.0, EarlyStopping::Never, Some(LANGUAGE), None),
    (3, -0.5, EarlyStopping::Heuristic, None, Some(2)),
];

fn golden() -> Golden {
    Golden::read("../seq2seq/golden.safetensors")
}

fn open(kind: &str) -> Seq2Seq {
    Seq2Seq::open(&testdata(&format!("../seq2seq/{kind}")), 0, 9).unwrap()
}

/// Returns the sources of a batch with their targets.
fn pairs(golden: &Golden, index: usize) -> Vec<(Vec<u32>, Vec<u32>)> {
    let side = |name: &str| {
        let mut pieces = golden.integers(&format!("batch{index}.{name}"));
        let cut = |n: &u32| {
            let own;
            (own, pieces) = pieces.split_at(*n as usize);
            own.to_vec()
        };
        golden.integers(&format!("batch{index}.{name}.lengths")).iter().map(cut).collect::<Vec<_>>()
    };
    side("sources").into_iter().zip(side("targets")).collect()
}

fn batch(pairs: &[(Vec<u32>, Vec<u32>)]) -> (Seq2SeqBatch, usize) {
    let mut batch = Seq2SeqBatch::default();
    for (key, (source, target)) in (0..).zip(pairs) {
        batch.push(source, target, key);
    }
    let n = batch.targets.len();
    (batch, n)
}

fn gradient(model: &Seq2Seq, gradients: &Gradients, name: &str) -> Vec<f32> {
    match name {
        SHARED => gradients.table_gradient(),
        _ => gradients.get(model.parameters(), name).unwrap().to_vec(),
    }
}

#[test]
#[expect(clippy::cast_possible_truncation, reason = "the golden file's precision")]
fn loss_and_gradients_equal_transformers_on_every_instruction_set() {
    let golden = golden();
    let kinds = [IsaKind::Avx512, IsaKind::Avx2, IsaKind::Gemm, IsaKind::Scalar];
    for isa in kinds.into_iter().filter_map(Isa::from_kind) {
        let device = Device::from(Cpu::with_isa(2, isa));
        for kind in KINDS {
            let model = open(kind);
            let (batch, n) = batch(&pairs(&golden, 0));
            let mut gradients = Gradients::new(model.parameters()).unwrap();
            let mut tape = Seq2SeqTape::default();
            let alone = model.loss(&device, &batch, &mut tape).unwrap();
            let (weight, dropout) = (1.0 / n as f32, Dropout::NONE);
            let sum = model.accumulate(&device, &batch, weight, dropout, &mut tape, &mut gradients);
            let wanted = golden.floats(&format!("{kind}.loss"));
            for sum in [alone, sum.unwrap()] {
                assert_close("loss", &[(sum / n as f64) as f32], wanted, RELATIVE);
            }
            let prefix = format!("{kind}.gradient.");
            let mut n_compared = 0;
            for name in golden.under(&prefix) {
                let wanted = golden.floats(&format!("{prefix}{name}"));
                let found = gradient(&model, &gradients, name);
                // The exact gradient of a key's bias is zero. Its rounding error must be small in comparison with the
                // gradient of the key's weight.
                if name.ends_with("k_proj.bias") {
                    let weight =
                        golden.floats(&format!("{prefix}{}", name.replace("bias", "weight")));
                    let scale = crate::support::largest(weight);
                    assert!(crate::support::largest(&found) < RELATIVE * scale, "{name}");
                } else {
                    assert_close(name, &found, wanted, RELATIVE);
                }
                n_compared += 1;
            }
            assert_eq!(n_compared, model.parameters().list().len());
        }
    }
}

#[test]
fn four_clipped_steps_of_adam_equal_torch() {
    let (golden, device) = (golden(), Device::cpu(2));
    for kind in KINDS {
        let mut model = open(kind);
        let settings = AdamSettings { eps: 1e-3, max_norm: Some(13.0), ..AdamSettings::default() };
        let mut adam = Adam::new(model.parameters(), settings).unwrap();
        let mut gradients = Gradients::new(model.parameters()).unwrap();
        let mut tape = Seq2SeqTape::default();
        for index in 0..4 {
            gradients.clear();
            let pairs = pairs(&golden, index);
            let n: usize = pairs.iter().map(|(_, target)| target.len()).sum();
            // Each micro-batch has one sentence pair. The gradients of the micro-batches add up to the gradient of the
            // batch.
            for pair in &pairs {
                let (batch, _) = batch(std::slice::from_ref(pair));
                let (weight, dropout) = (1.0 / n as f32, Dropout::NONE);
                model
                    .accumulate(&device, &batch, weight, dropout, &mut tape, &mut gradients)
                    .unwrap();
            }
            adam.step(&device, 5e-3, model.parameters_mut(), &mut gradients).unwrap();
        }
        let prefix = format!("{kind}.adam.");
        for name in golden.under(&prefix) {
            let wanted = golden.floats(&format!("{prefix}{name}"));
            assert_close(name, model.parameters().get(name).unwrap(), wanted, RELATIVE);
        }
    }
}

#[test]
fn beam_searches_equal_generate() {
    let (golden, device) = (golden(), Device::cpu(2));
    for kind in KINDS {
        let model = open(kind);
        for (index, (n_beams, length_penalty, stopping, first, last)) in
            SEARCHES.into_iter().enumerate()
        {
            let beams = BeamSearch { n_beams, length_penalty, stopping };
            let generation = GenerationConfig {
                start: 2,
                forced_first: first,
                forced_last: last,
                max_length: MAX_LENGTH,
            };
            for at in 0..3 {
                let name = |part: &str| format!("{kind}.search{index}.{at}.{part}");
                let source = golden.integers(&format!("source{at}"));
                let found = model.search(&device, source, &generation, &beams).unwrap();
                let pieces = &found[0].pieces;
                assert_eq!(pieces, golden.integers(&name("pieces")), "{kind} {index} {at}");
                if n_beams > 1 {
                    #[expect(clippy::cast_possible_truncation, reason = "the file's precision")]
                    let score = found[0].score as f32;
                    assert_close("score", &[score], golden.floats(&name("score")), RELATIVE);
                }
                assert!(found.is_sorted_by(|a, b| a.score >= b.score));
            }
        }
    }
}

#[test]
fn samples_equal_those_from_the_logits_of_transformers() {
    let (golden, device) = (golden(), Device::cpu(2));
    for kind in KINDS {
        let model = open(kind);
        let mut sources = Packed::default();
        for at in 0..3 {
            sources.push(golden.integers(&format!("source{at}")), at);
        }
        let generation = GenerationConfig {
            start: 2,
            forced_first: None,
            forced_last: None,
            max_length: MAX_LENGTH,
        };
        for (index, temperature) in [1.0, 0.6].into_iter().enumerate() {
            let name = |at: usize, part: &str| format!("{kind}.draw{index}.{at}.{part}");
            let mut n_drawn = [0; 3];
            let mut next_uniform = |at: usize| {
                n_drawn[at] += 1;
                f64::from(golden.floats(&name(at, "shares"))[n_drawn[at] - 1])
            };
            let written =
                model.sample(&device, &sources, &generation, temperature, &mut next_uniform);
            for (at, written) in written.unwrap().into_iter().enumerate() {
                let wanted = golden.integers(&name(at, "pieces"));
                let wanted = (wanted.last() == Some(&2)).then(|| wanted.to_vec());
                assert_eq!(written, wanted, "{kind} {index} {at}");
            }
        }
    }
}

#[test]
fn dropout_depends_on_the_sentence_and_its_gradient_equals_the_difference_quotient() {
    let (golden, device) = (golden(), Device::cpu(2));
    let mut model = open("mbart50");
    let pairs = pairs(&golden, 0);
    let (whole, n) = batch(&pairs);
    let dropout = Dropout::with_rates(DropoutRates { hidden: 0.2, attention: 0.2 }, 5, 1);
    let mut gradients = Gradients::new(model.parameters()).unwrap();
    let (mut unused, mut tape) =
        (Gradients::new(model.parameters()).unwrap(), Seq2SeqTape::default());
    let mut loss = |model: &Seq2Seq, batch: &Seq2SeqBatch, gradients: &mut Gradients| {
        let weight = 1.0 / n as f32;
        model.accumulate(&device, batch, weight, dropout, &mut tape, gradients).unwrap()
    };
    let together = loss(&model, &whole, &mut gradients);
    let mut alone = 0.0;
    for (key, (source, target)) in (0..).zip(&pairs) {
        let mut one = Seq2SeqBatch::default();
        one.push(source, target, key);
        alone += loss(&model, &one, &mut unused);
        unused.clear();
    }
    assert!((together - alone).abs() < 1e-4 * together, "{together} {alone}");
    for name in [
        "model.encoder.layers.0.self_attn.v_proj.weight",
        "model.decoder.layers.1.encoder_attn.q_proj.weight",
        "model.decoder.layers.0.fc1.weight",
        "model.encoder.embed_positions.weight",
        SHARED,
    ] {
        let analytic = gradient(&model, &gradients, name);
        let size = |at: &usize| analytic[*at].abs();
        let at = (0..analytic.len()).max_by(|a, b| size(a).total_cmp(&size(b))).unwrap();
        let mut moved = |by: f32| {
            model.parameters_mut().get_mut(name).unwrap()[at] += by;
            unused.clear();
            loss(&model, &whole, &mut unused) / n as f64
        };
        let quotient = (moved(0.004) - moved(-0.008)) / 0.008;
        moved(0.004);
        let error = (quotient - f64::from(analytic[at])).abs();
        assert!(error < 0.02 * quotient.abs(), "{name}: {quotient} {}", analytic[at]);
    }
}

#[test]
fn a_saved_model_has_the_same_loss() {
    let (dir, golden, device) = (tempfile::tempdir().unwrap(), golden(), Device::cpu(1));
    let model = open("mbart50");
    model.save(dir.path()).unwrap();
    let again = Seq2Seq::open(dir.path(), 0, 1).unwrap();
    assert_eq!(again.config(), model.config());
    let (batch, _) = batch(&pairs(&golden, 1));
    let loss = |model: &Seq2Seq| {
        model.loss(&device, &batch, &mut Seq2SeqTape::default()).unwrap().to_bits()
    };
    assert_eq!(loss(&again), loss(&model));
}

#[test]
fn added_pieces_get_rows_and_another_architecture_is_an_error() {
    let stored = open("mbart");
    let dir = testdata("../seq2seq/mbart");
    let more = Seq2Seq::open(&dir, 3, 9).unwrap();
    let (before, after) =
        (stored.parameters().get(SHARED).unwrap(), more.parameters().get(SHARED).unwrap());
    assert_eq!(after[..before.len()], *before);
    assert_eq!(after.len(), before.len() + 3 * 16);
    assert!(after[before.len()..].iter().all(|x| *x != 0.0));
    let error = Seq2Seq::open(&testdata("deep"), 0, 9).err().unwrap().to_string();
    assert!(error.contains("mbart"), "{error}");
}
