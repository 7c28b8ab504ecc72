//! Compares the best allowed pieces with a brute-force search over all pieces.

use crate::support::{Bench, Cpu};
use melm_nn::config::Config;
use melm_nn::isa::{Isa, IsaKind};
use melm_nn::mlm::{AllowedPieces, Candidate, MaskedBatch, MaskedLm, PieceSets, Predictions};

const VOCAB: usize = 1_301;

fn config() -> Config {
    Config {
        vocab_size: VOCAB,
        hidden_size: 36,
        n_layers: 1,
        n_heads: 3,
        intermediate_size: 40,
        max_position_embeddings: 40,
        ..Config::default()
    }
}

fn batch(n_sentences: u64) -> MaskedBatch {
    let mut batch = MaskedBatch::default();
    for key in 0..n_sentences {
        let start = batch.sentences.n_rows();
        let pieces: Vec<u32> =
            (0..9).map(|i| 3 + (u32::try_from(key).unwrap() * 31 + i * 17) % 1_000).collect();
        batch.sentences.push(&pieces, key);
        batch.positions.extend([start + 1, start + 4, start + 7]);
    }
    batch
}

/// Returns five sets of allowed pieces: a few pieces, the pieces in `bad`, all pieces, no piece, and one piece.
fn sets(bad: &[Candidate]) -> PieceSets {
    let mut sets = PieceSets::default();
    sets.add(VOCAB, |piece| piece % 97 == 5);
    sets.add(VOCAB, |piece| bad.iter().any(|candidate| candidate.piece == piece));
    sets.add(VOCAB, |_| true);
    sets.add(VOCAB, |_| false);
    sets.add(VOCAB, |piece| piece as usize == VOCAB - 1);
    sets
}

#[test]
fn best_allowed_pieces_equal_brute_force_on_every_instruction_set() {
    for kind in [IsaKind::Avx512, IsaKind::Avx2, IsaKind::Scalar] {
        let Some(isa) = Isa::from_kind(kind) else { continue };
        for n_threads in [1, 3] {
            let mut model = MaskedLm::random(&config(), 9).unwrap();
            // Makes the first pieces of the vocabulary by far the most likely. Most sets do not allow them.
            model.parameters_mut().get_mut("lm_head.bias").unwrap()[..5].fill(30.0);
            let mut bench = Bench::new(model, Cpu::with_isa(n_threads, isa));
            for n_sentences in [1, 2, 11] {
                check(&mut bench, &batch(n_sentences));
            }
        }
    }
}

fn check(bench: &mut Bench, batch: &MaskedBatch) {
    let Bench { device, model, tape, .. } = bench;
    let mut full = Predictions::default();
    model.predict(device, batch, VOCAB, tape, &mut full).unwrap();
    assert_eq!(full.n_rows(), batch.positions.len());
    assert_eq!(full.row(0).len(), VOCAB);
    let sets = sets(&full.row(0)[VOCAB - 40..]);
    let set_of: Vec<usize> = (0..batch.positions.len()).map(|at| at % 5).collect();
    for k in [1, 5, 20] {
        let mut found = Predictions::default();
        let allowed = AllowedPieces { sets: &sets, set_of: &set_of };
        model.predict_allowed(device, batch, k, allowed, tape, &mut found).unwrap();
        assert_eq!(found.n_rows(), batch.positions.len());
        for (row, set) in set_of.iter().enumerate() {
            let mut expected = full.row(row).to_vec();
            expected.retain(|candidate| sets.contains(*set, candidate.piece as usize));
            expected.truncate(k);
            let pieces = |row: &[Candidate]| row.iter().map(|c| c.piece).collect::<Vec<_>>();
            assert_eq!(pieces(found.row(row)), pieces(&expected), "k = {k}, row {row}");
            for (found, expected) in found.row(row).iter().zip(&expected) {
                assert!((found.log_probability - expected.log_probability).abs() < 1e-5);
            }
        }
    }
}

#[test]
fn a_batch_without_masks_has_no_predictions() {
    let mut bench = Bench::new(MaskedLm::random(&config(), 9).unwrap(), Cpu::new(1));
    let mut batch = batch(1);
    batch.positions.clear();
    let mut found = Predictions::default();
    bench.model.predict(&bench.device, &batch, 3, &mut bench.tape, &mut found).unwrap();
    assert_eq!(found.n_rows(), 0);
}
