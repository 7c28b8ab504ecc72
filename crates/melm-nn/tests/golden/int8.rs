//! Taggers with 8-bit weights: close to f32, and independent of threads and batches.

use melm_nn::config::Config;
use melm_nn::device::{Cpu, Device};
use melm_nn::isa::{Isa, IsaKind};
use melm_nn::tagger::{HeadKind, TaggedBatch, Tagger, TaggerSettings, TaggerTape};
use std::path::Path;

const N_TAGS: usize = 5;

fn tagger(model_type: &str) -> Tagger {
    let config = format!(
        r#"{{"model_type": "{model_type}", "vocab_size": 90, "hidden_size": 48, "num_hidden_layers": 3,
        "num_attention_heads": 4, "intermediate_size": 100, "max_position_embeddings": 64, "pad_token_id": 1,
        "global_attn_every_n_layers": 2, "local_attention": 8, "type_vocab_size": 1, "layer_norm_eps": 1e-5}}"#
    );
    let config = Config::parse(Path::new("config.json"), &config).unwrap();
    let settings = TaggerSettings { n_tags: N_TAGS, kind: HeadKind::Crf, allowed: None };
    Tagger::random(&config, settings, 3).unwrap()
}

fn sentence(length: u32) -> (Vec<u32>, Vec<usize>) {
    let pieces: Vec<u32> = (0..length).map(|at| 4 + (at * 29 + length) % 80).collect();
    let firsts = (1..pieces.len() - 1).step_by(2).collect();
    (pieces, firsts)
}

fn batch(lengths: &[u32]) -> TaggedBatch {
    let mut batch = TaggedBatch::default();
    for length in lengths {
        let (pieces, firsts) = sentence(*length);
        batch.push(0, &pieces, &firsts, &[]);
    }
    batch
}

fn int8_emissions(tagger: &Tagger, cpu: &Cpu, lengths: &[u32]) -> Vec<f32> {
    let weights = tagger.quantize().unwrap();
    let mut tape = TaggerTape::for_prediction(tagger.config());
    let mut out = Vec::new();
    tagger.emissions_int8(cpu, &weights, &batch(lengths), &mut tape, &mut out).unwrap();
    out
}

#[test]
fn emissions_are_close_to_those_in_f32() {
    for family in ["xlm-roberta", "modernbert"] {
        let tagger = tagger(family);
        let lengths = [31, 7, 20];
        let mut tape = TaggerTape::for_prediction(tagger.config());
        let mut wanted = Vec::new();
        tagger.emissions(&Device::cpu(1), &batch(&lengths), &mut tape, &mut wanted).unwrap();
        let found = int8_emissions(&tagger, &Cpu::new(1), &lengths);
        let spread = wanted.iter().fold(0.0_f32, |most, x| most.max(x.abs()));
        let error = wanted.iter().zip(&found).fold(0.0_f32, |most, (a, b)| most.max((a - b).abs()));
        assert!(error > 0.0, "{family}: the 8-bit weights were not used");
        assert!(error < 0.05 * spread, "{family}: {error} of {spread}");
    }
}

#[test]
fn emissions_do_not_depend_on_threads_or_batches() {
    let tagger = tagger("xlm-roberta");
    let wanted = int8_emissions(&tagger, &Cpu::new(1), &[40, 9, 23]);
    for n_threads in [2, 5, 16] {
        assert_eq!(int8_emissions(&tagger, &Cpu::new(n_threads), &[40, 9, 23]), wanted);
    }
    let alone = int8_emissions(&tagger, &Cpu::new(1), &[9]);
    let before = sentence(40).1.len() * N_TAGS;
    assert_eq!(alone, wanted[before..before + alone.len()]);
    let scalar = Cpu::with_isa(2, Isa::from_kind(IsaKind::Scalar).unwrap());
    let plain = int8_emissions(&tagger, &scalar, &[40, 9, 23]);
    let error = plain.iter().zip(&wanted).fold(0.0_f32, |most, (a, b)| most.max((a - b).abs()));
    assert!(error < 0.02, "{error}");
}
