//! Compares the embedded model, which has int8 weights, with transformers on sentences in four languages.

use crate::support::{Device, Golden, RELATIVE, assert_close};
use melm_nn::mlm::{MaskedBatch, MaskedLm, MaskedLmTape, Predictions};
use melm_nn::weights::Checkpoint;
use std::path::Path;

#[test]
fn logits_and_best_five_pieces_equal_transformers_in_four_languages() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../melm-mini/model");
    let model = MaskedLm::open(&Checkpoint::open(&folder).unwrap(), 0, 0).unwrap();
    let golden = Golden::read("mini.safetensors");
    let device = Device::cpu(2);
    let mut tape = MaskedLmTape::for_prediction(model.config());
    let mut out = Predictions::default();
    for language in ["de", "en", "es", "nl"] {
        let name = |part: &str| format!("{language}.{part}");
        let mut batch = MaskedBatch::default();
        batch.sentences.push(golden.integers(&name("pieces")), 0);
        batch.positions =
            golden.integers(&name("masked")).iter().map(|row| *row as usize).collect();
        model.predict(&device, &batch, 5, &mut tape, &mut out).unwrap();
        let best: Vec<_> = (0..out.n_rows()).flat_map(|row| out.row(row)).collect();
        let pieces: Vec<_> = best.iter().map(|candidate| candidate.piece).collect();
        assert_eq!(pieces, golden.integers(&name("best")), "{language}");
        let found: Vec<_> = best.iter().map(|candidate| candidate.log_probability).collect();
        assert_close(&name("best"), &found, golden.floats(&name("log_probabilities")), RELATIVE);

        // Logits and log-probabilities of a row differ by a constant. The first value of each row is therefore
        // subtracted before they are compared.
        let n_pieces = model.config().vocab_size;
        model.predict(&device, &batch, n_pieces, &mut tape, &mut out).unwrap();
        let n_logits = n_pieces.div_ceil(37);
        for (row, logits) in golden.floats(&name("logits")).chunks_exact(n_logits).enumerate() {
            let mut all = vec![f32::NAN; n_pieces];
            for candidate in out.row(row) {
                all[candidate.piece as usize] = candidate.log_probability;
            }
            let found: Vec<_> = all.iter().step_by(37).map(|x| x - all[0]).collect();
            let wanted: Vec<_> = logits.iter().map(|x| x - logits[0]).collect();
            assert_close(&name("logits"), &found, &wanted, RELATIVE);
        }
    }
}
