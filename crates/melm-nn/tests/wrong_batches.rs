//! Batches that do not fit a model are refused. `melm` never makes such batches.
#![expect(clippy::unwrap_used, reason = "a test")]

use melm_nn::Error;
use melm_nn::config::Config;
use melm_nn::cuda::{Cuda, CudaSettings};
use melm_nn::device::Device;
use melm_nn::lstm::{LstmConfig, LstmLm, LstmTape};
use melm_nn::mlm::{MaskedBatch, MaskedLm, MaskedLmTape, Predictions};
use melm_nn::packed::Packed;
use melm_nn::tagger::{HeadKind, TaggedBatch, Tagger, TaggerSettings, TaggerTape};

fn config() -> Config {
    Config {
        vocab_size: 10,
        hidden_size: 8,
        n_layers: 1,
        n_heads: 1,
        intermediate_size: 8,
        max_position_embeddings: 8,
        ..Config::default()
    }
}

/// Predicts the piece at a row of a sentence.
fn predict(pieces: &[u32], row: usize) -> Result<(), Error> {
    let model = MaskedLm::random(&config(), 1).unwrap();
    let mut batch = MaskedBatch::default();
    batch.sentences.push(pieces, 0);
    batch.positions.push(row);
    let mut tape = MaskedLmTape::for_prediction(model.config());
    model.predict(&Device::cpu(1), &batch, 1, &mut tape, &mut Predictions::default())
}

#[test]
fn masked_batches_must_fit_the_model() {
    assert!(predict(&[0, 4, 2], 1).is_ok());
    assert!(matches!(
        predict(&[0, 10, 2], 1),
        Err(Error::PieceOutOfRange { piece: 10, vocab_size: 10 })
    ));
    assert!(matches!(predict(&[0; 9], 1), Err(Error::SentenceLength { n_pieces: 9, .. })));
    assert!(matches!(
        predict(&[], 0),
        Err(Error::MaskedPositions { .. } | Error::SentenceLength { .. })
    ));
    assert!(matches!(predict(&[0, 4, 2], 3), Err(Error::MaskedPositions { n_rows: 3, .. })));
}

#[test]
fn tagged_batches_must_fit_the_sentence() {
    let settings = TaggerSettings { n_tags: 2, kind: HeadKind::Linear, allowed: None };
    let model = Tagger::random(&config(), settings, 1).unwrap();
    let mut batch = TaggedBatch::default();
    // The second token begins after the last piece.
    batch.push(0, &[0, 4, 2], &[1, 3], &[]);
    let mut tape = TaggerTape::for_prediction(model.config());
    let tagged = model.emissions(&Device::cpu(1), &batch, &mut tape, &mut Vec::new());
    assert!(matches!(tagged, Err(Error::TaggedTokens { n_tokens: 2, n_rows: 3, .. })));

    let mut batch = TaggedBatch::default();
    batch.push(0, &[0, 4, 2], &[1], &[2]);
    let tagged = model.emissions(&Device::cpu(1), &batch, &mut tape, &mut Vec::new());
    assert!(matches!(tagged, Err(Error::TagOutOfRange { tag: 2, n_tags: 2 })));
}

#[test]
fn a_sequence_must_have_a_start_and_an_end() {
    let config =
        LstmConfig { vocab_size: 10, embedding_size: 4, hidden_size: 4, n_layers: 1, dropout: 0.0 };
    let model = LstmLm::random(&config, 1).unwrap();
    let mut batch = Packed::default();
    batch.push(&[0], 0);
    let loss = model.loss(&Device::cpu(1), &batch, None, &mut LstmTape::default());
    assert!(matches!(loss, Err(Error::NothingToPredict { n_tokens: 1 })));
}

#[test]
fn a_tensor_that_the_model_does_not_have_is_named() {
    let model = MaskedLm::random(&config(), 1).unwrap();
    let found = model.parameters().get("classifier.weight").map(<[f32]>::len);
    assert!(matches!(found, Err(Error::NoParameter { name }) if name == "classifier.weight"));
}

#[test]
fn a_model_without_kernels_is_refused_on_a_gpu() {
    let gpu = Cuda::emulated(&CudaSettings::default()).unwrap();
    let config =
        LstmConfig { vocab_size: 10, embedding_size: 4, hidden_size: 4, n_layers: 1, dropout: 0.0 };
    let model = LstmLm::random(&config, 1).unwrap();
    let mut batch = Packed::default();
    batch.push(&[0, 4, 2], 0);
    let loss = model.loss(&gpu.into(), &batch, None, &mut LstmTape::default());
    assert!(matches!(loss, Err(Error::NoKernels)));
}
