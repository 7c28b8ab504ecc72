//! Compares the LSTM language model with torch. `tools/make_golden_lstm.py` computed the expected numbers.

use crate::support::{Cpu, Device, Golden, Gradients, RELATIVE, assert_close};
use melm_nn::dropout::{Dropout, DropoutRates};
use melm_nn::isa::{Isa, IsaKind};
use melm_nn::lstm::{EMBEDDING, LstmConfig, LstmLm, LstmTape};
use melm_nn::optim::{Adam, AdamSettings};
use melm_nn::packed::Packed;

fn golden() -> Golden {
    Golden::read("../lstm/golden.safetensors")
}

fn model(golden: &Golden, n_layers: usize) -> LstmLm {
    let (vocab_size, embedding_size, hidden_size) = (23, 6, 9);
    let config = LstmConfig { vocab_size, embedding_size, hidden_size, n_layers, dropout: 0.0 };
    let mut model = LstmLm::zeros(&config).unwrap();
    let prefix = format!("layers{n_layers}.start.");
    for name in golden.under(&prefix) {
        let values = golden.floats(&format!("{prefix}{name}"));
        model.parameters_mut().get_mut(name).unwrap().copy_from_slice(values);
    }
    model
}

fn sequences(golden: &Golden, index: usize) -> Vec<Vec<u32>> {
    let mut tokens = golden.integers(&format!("batch{index}.tokens"));
    let lengths = golden.integers(&format!("batch{index}.lengths"));
    let cut = |n: &u32| {
        let own;
        (own, tokens) = tokens.split_at(*n as usize);
        own.to_vec()
    };
    lengths.iter().map(cut).collect()
}

fn batch(sequences: &[Vec<u32>]) -> (Packed, usize) {
    let mut batch = Packed::default();
    for (key, tokens) in (0..).zip(sequences) {
        batch.push(tokens, key);
    }
    (batch, sequences.iter().map(|tokens| tokens.len() - 1).sum())
}

fn gradient(model: &LstmLm, gradients: &Gradients, name: &str) -> Vec<f32> {
    match name {
        EMBEDDING => gradients.table_gradient(),
        _ => gradients.get(model.parameters(), name).unwrap().to_vec(),
    }
}

#[test]
fn loss_and_gradients_equal_torch_on_every_instruction_set() {
    let golden = golden();
    let kinds = [IsaKind::Avx512, IsaKind::Avx2, IsaKind::Gemm, IsaKind::Scalar];
    for isa in kinds.into_iter().filter_map(Isa::from_kind) {
        let device = Device::from(Cpu::with_isa(2, isa));
        for n_layers in [1, 2] {
            let model = model(&golden, n_layers);
            let (batch, n) = batch(&sequences(&golden, 0));
            let mut gradients = Gradients::new(model.parameters()).unwrap();
            let mut tape = LstmTape::default();
            let (weight, dropout) = (1.0 / n as f32, Dropout::NONE);
            let sum = model
                .accumulate(&device, &batch, weight, dropout, &mut tape, &mut gradients)
                .unwrap();
            let prefix = format!("layers{n_layers}.gradient.");
            let wanted = golden.floats(&format!("layers{n_layers}.loss"));
            #[expect(clippy::cast_possible_truncation, reason = "the golden file's precision")]
            assert_close("loss", &[(sum / n as f64) as f32], wanted, RELATIVE);
            for name in golden.under(&prefix) {
                let wanted = golden.floats(&format!("{prefix}{name}"));
                assert_close(name, &gradient(&model, &gradients, name), wanted, RELATIVE);
            }
        }
    }
}

#[test]
fn four_clipped_steps_of_adam_equal_torch() {
    let (golden, device) = (golden(), Device::cpu(2));
    for n_layers in [1, 2] {
        let mut model = model(&golden, n_layers);
        let settings = AdamSettings { eps: 1e-3, max_norm: Some(0.33), ..AdamSettings::default() };
        let mut adam = Adam::new(model.parameters(), settings).unwrap();
        let mut gradients = Gradients::new(model.parameters()).unwrap();
        let mut tape = LstmTape::default();
        for index in 0..4 {
            gradients.clear();
            let (batch, n) = batch(&sequences(&golden, index));
            let (weight, dropout) = (1.0 / n as f32, Dropout::NONE);
            model.accumulate(&device, &batch, weight, dropout, &mut tape, &mut gradients).unwrap();
            adam.step(&device, 5e-3, model.parameters_mut(), &mut gradients).unwrap();
        }
        let prefix = format!("layers{n_layers}.adam.");
        for name in golden.under(&prefix) {
            let wanted = golden.floats(&format!("{prefix}{name}"));
            assert_close(name, model.parameters().get(name).unwrap(), wanted, RELATIVE);
        }
    }
}

#[test]
fn scores_token_by_token_equal_torch_over_whole_sequences() {
    let (golden, device) = (golden(), Device::cpu(1));
    for n_layers in [1, 2] {
        let model = model(&golden, n_layers);
        let sequences = sequences(&golden, 0);
        let mut found: Vec<Vec<f32>> = vec![Vec::new(); sequences.len()];
        let (mut state, mut scores) = (model.start(sequences.len()), Vec::new());
        let mut alive: Vec<_> = (0..sequences.len()).collect();
        for time in 0.. {
            // Keeps only the sequences that still have a next token to predict.
            let places: Vec<_> =
                (0..alive.len()).filter(|at| time + 1 < sequences[alive[*at]].len()).collect();
            state.keep(&places);
            alive = places.iter().map(|at| alive[*at]).collect();
            if alive.is_empty() {
                break;
            }
            let tokens: Vec<_> = alive.iter().map(|at| sequences[*at][time]).collect();
            model.next(&device, &tokens, &mut state, &mut scores).unwrap();
            for (at, row) in alive.iter().zip(scores.chunks_exact(23)) {
                found[*at].extend(row);
            }
        }
        let wanted = golden.floats(&format!("layers{n_layers}.scores"));
        assert_close("scores", &found.concat(), wanted, RELATIVE);
    }
}

#[test]
fn dropout_depends_on_the_sequence_and_its_gradient_equals_the_difference_quotient() {
    let (golden, device) = (golden(), Device::cpu(2));
    let mut model = model(&golden, 2);
    let all = sequences(&golden, 0);
    let (batch, n) = batch(&all);
    let dropout = Dropout::with_rates(DropoutRates { hidden: 0.3, attention: 0.0 }, 5, 1);
    let mut gradients = Gradients::new(model.parameters()).unwrap();
    let mut tape = LstmTape::default();
    let mut loss = |model: &LstmLm, batch: &Packed, gradients: &mut Gradients| {
        let weight = 1.0 / n as f32;
        model.accumulate(&device, batch, weight, dropout, &mut tape, gradients).unwrap()
    };
    let whole = loss(&model, &batch, &mut gradients);
    let mut alone = 0.0;
    let mut unused = Gradients::new(model.parameters()).unwrap();
    for (key, tokens) in (0..).zip(&all) {
        let mut one = Packed::default();
        one.push(tokens, key);
        alone += loss(&model, &one, &mut unused);
    }
    assert!((whole - alone).abs() < 1e-4 * whole, "{whole} {alone}");
    for name in ["lstm.weight_hh_l0", "lstm.weight_ih_l1", "output.weight", EMBEDDING] {
        let analytic = gradient(&model, &gradients, name);
        let at =
            (0..analytic.len()).max_by(|a, b| analytic[*a].abs().total_cmp(&analytic[*b].abs()));
        let at = at.unwrap();
        let mut moved = |by: f32| {
            model.parameters_mut().get_mut(name).unwrap()[at] += by;
            loss(&model, &batch, &mut unused) / n as f64
        };
        let quotient = (moved(0.01) - moved(-0.02)) / 0.02;
        moved(0.01);
        let error = (quotient - f64::from(analytic[at])).abs();
        assert!(error < 0.01 * quotient.abs(), "{name}: {quotient} {}", analytic[at]);
    }
}
