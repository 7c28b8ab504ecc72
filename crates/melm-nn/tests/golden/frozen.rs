//! The backward pass ends at the lowest part of the encoder that is trained. The gradients of the parts above it are
//! compared with transformers.

use crate::added_rows;
use crate::cuda::{on_gpu, settings};
use crate::families::{ALL, folder, golden_file, tagged_batch, tagger};
use crate::steps::ADAMW;
use crate::support::{Device, Golden, RELATIVE, assert_close, largest};
use crate::tagger::TaggerBench;
use crate::tiny::{MODELS, is_exactly_zero};
use melm_nn::cuda::Precision;
use melm_nn::dropout::Dropout;
use melm_nn::params::TABLE;

/// Freezes the tensors of a tagger whose role starts with one of `prefixes`, and compares the gradients of the others with
/// transformers. The tensors whose role starts with one of `left_out` must have no gradient.
fn check(family: &str, device: Device, prefixes: &[&str], left_out: &[&str]) {
    let golden = Golden::read(&golden_file(family));
    let batch = tagged_batch(&golden);
    let mut bench = TaggerBench::new(tagger(&folder(&format!("{family}.tagger"))), device);
    let starts_with = |name: &str, prefixes: &[&str]| prefixes.iter().any(|p| name.starts_with(p));
    bench.model.parameters_mut().freeze(|name| starts_with(name, prefixes));
    // Twice with half the weight, so that gradients are also added to.
    for _ in 0..2 {
        bench.accumulate(&batch, 0.5 / batch.n_tokens() as f32, Dropout::NONE);
    }
    let wanted = |name: &str| golden.floats(&format!("tagger.gradient.{name}"));
    let scale = bench.names().iter().map(|name| largest(wanted(name))).fold(0.0, f32::max);
    let list = bench.model.parameters().list();
    let parameters: Vec<_> =
        list.iter().map(|p| (p.name.clone(), p.role.clone(), p.is_frozen)).collect();
    let (mut n_compared, mut n_left_out) = (0, 0);
    for (name, role, is_frozen) in parameters {
        let what = format!("{family}, {prefixes:?} frozen: {name}");
        if !is_frozen {
            let found = bench.gradient(&name);
            if is_exactly_zero(&name) {
                assert!(largest(&found) < 0.05 * RELATIVE * scale, "{what}");
            } else {
                assert_close(&what, &found, wanted(&name), RELATIVE);
            }
            n_compared += 1;
        } else if starts_with(&role, left_out) {
            let found = bench.gradients.get(bench.model.parameters(), &name);
            assert!(found.is_none(), "{what} has a gradient");
            n_left_out += 1;
        }
    }
    assert!(n_compared >= 2 && (n_left_out > 0 || left_out.is_empty()), "{family}: {prefixes:?}");
}

fn check_all(device: &dyn Fn() -> Device) {
    let (embeddings, first) = ("roberta.embeddings.", "roberta.encoder.layer.0.");
    let part = "roberta.encoder.layer.1.attention.self.";
    for family in ALL {
        // In ModernBERT, the norm before layer 1 is the last part of layer 0, whose backward pass is therefore needed.
        let below: &[&str] =
            if family == "modernbert" { &[embeddings] } else { &[embeddings, first] };
        check(family, device(), &[embeddings], &[embeddings]);
        check(family, device(), &[embeddings, first], below);
        check(family, device(), &[embeddings, first, part], below);
        // Everything but the head.
        check(family, device(), &["roberta."], &["roberta."]);
        // The embeddings need the gradients of all layers.
        check(family, device(), &["roberta.encoder.layer."], &[]);
    }
}

/// Freezes everything but the added rows. Their gradients are those of torch.
fn check_added_rows(device: &dyn Fn() -> Device) {
    for name in MODELS {
        let golden = Golden::read(&format!("{name}.added.safetensors"));
        let mut bench = added_rows::open(name, &golden, device(), &[]);
        bench.model.parameters_mut().freeze(|_| true);
        let batch = golden.batch(0);
        bench.accumulate(&batch, 1.0 / batch.positions.len() as f32, Dropout::NONE);
        for tensor in [TABLE, added_rows::BIAS] {
            let wanted = golden.floats(&format!("{}.gradient.{tensor}", ADAMW.prefix));
            let found = bench.gradient(tensor);
            assert_close(tensor, &found[found.len() - wanted.len()..], wanted, RELATIVE);
        }
    }
}

#[test]
fn added_rows_of_a_frozen_model_have_the_gradients_of_torch() {
    check_added_rows(&|| Device::cpu(2));
}

#[test]
fn added_rows_of_a_frozen_model_have_the_gradients_of_torch_on_the_gpu() {
    on_gpu(&settings(Precision::F32), check_added_rows);
}

#[test]
fn parts_above_frozen_layers_have_the_gradients_of_transformers() {
    check_all(&|| Device::cpu(2));
}

#[test]
fn parts_above_frozen_layers_have_the_gradients_of_transformers_on_the_gpu() {
    on_gpu(&settings(Precision::F32), check_all);
}
