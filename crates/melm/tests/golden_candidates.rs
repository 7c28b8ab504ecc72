//! Compares the linearized input and the predictions of the model with those of transformers; see
//! `tools/make_golden_candidates.py`.
//!
//! Every piece is a candidate, as in the authors' code. The masked positions are read from the golden file.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::path::{Path, PathBuf};

use melm::augment::Gold;
use melm::entity_lm::{EntityLm, MarkerSettings};
use melm::markers::RowStart;
use melm::models::{EmbeddedFiles, Pretrained};
use melm::plan::{ModelClass, ModelClasses, Preset};
use melm_nn::device::Device;
use melm_nn::mlm::{MaskedBatch, MaskedLmTape, Predictions};
use melm_text::{Corpus, ReadOptions, Source};
use serde::Deserialize;

/// The tolerance of a log-probability, as in the golden tests of melm-nn.
const TOLERANCE: f32 = 1e-4;

#[derive(Deserialize)]
struct Case {
    sentence: usize,
    pieces: Vec<u32>,
    masked: Vec<usize>,
    best: Vec<[u32; 5]>,
    log_probabilities: Vec<[f32; 5]>,
}

fn testdata(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/candidates").join(path)
}

fn corpus() -> Corpus {
    let text = std::fs::read_to_string(testdata("sentences.conll")).unwrap();
    let source = Source::from_text("sentences.conll", text);
    Corpus::read(&source, &ReadOptions::default()).unwrap()
}

fn assert_equal(pretrained: &Pretrained, golden: &str) {
    let golden = std::fs::read_to_string(testdata(golden)).unwrap();
    let cases: Vec<Case> = serde_json::from_str(&golden).unwrap();
    let corpus = corpus();
    let plan = Preset::ReferenceCode.plan(ModelClasses::both(ModelClass::XLM_R_BASE));
    // This initialisation uses no random numbers, so that Python can compute the same rows.
    let markers = MarkerSettings { start: RowStart::RelatedWords, ..plan.markers };
    let gold = Gold { train: &corpus, dev: None };
    let (lm, _) = EntityLm::new(pretrained, gold, &markers, 1).unwrap();
    let linearized = lm.linearize(&corpus).unwrap();
    assert_eq!(linearized.windows.len(), cases.len());
    let (device, model) = (Device::cpu(2), lm.model());
    let mut tape = MaskedLmTape::for_prediction(model.config());
    let mut found = Predictions::default();
    for (window, case) in linearized.windows.iter().zip(&cases) {
        assert_eq!((window.sentence, &window.pieces), (case.sentence, &case.pieces));
        let mut pieces = window.pieces.clone();
        for position in &case.masked {
            pieces[*position] = lm.tokenizer().specials().mask;
        }
        let mut batch = MaskedBatch::default();
        batch.sentences.push(&pieces, 0);
        batch.positions.clone_from(&case.masked);
        let k = plan.generate.ranks.last();
        model.predict(&device, &batch, k, &mut tape, &mut found).unwrap();
        assert_eq!(found.n_rows(), case.best.len());
        for (row, (best, likely)) in case.best.iter().zip(&case.log_probabilities).enumerate() {
            let ids: Vec<_> = found.row(row).iter().map(|candidate| candidate.piece).collect();
            assert_eq!(ids, best, "sentence {}, masked position {row}", case.sentence);
            for (candidate, wanted) in found.row(row).iter().zip(likely) {
                let error = (candidate.log_probability - wanted).abs();
                assert!(error <= TOLERANCE * wanted.abs().max(1.0), "{error} from {wanted}");
            }
        }
    }
}

#[test]
fn five_best_pieces_of_a_tiny_model_equal_those_of_transformers() {
    assert_equal(&Pretrained::open(&testdata("tiny")).unwrap(), "tiny.json");
}

#[test]
fn five_best_pieces_of_mini_equal_those_of_transformers() {
    let files = EmbeddedFiles {
        config: melm_mini::CONFIG,
        tokenizer: melm_mini::TOKENIZER,
        tokenizer_config: melm_mini::TOKENIZER_CONFIG,
        special_tokens_map: melm_mini::SPECIAL_TOKENS_MAP,
        weights: melm_mini::WEIGHTS.unwrap(),
    };
    assert_equal(&Pretrained::embedded("mini", files).unwrap(), "mini.json");
}
