//! Compares the engine with transformers and torch. The expected numbers were computed by `tools/make_golden_nn.py`
//! (masked language model), `tools/make_golden_families.py` and `tools/make_golden_family_steps.py` (other families),
//! `tools/make_golden_tagger.py` (tagger), `tools/make_golden_lstm.py` (LSTM) and `tools/make_golden_seq2seq.py`
//! (encoder-decoder).
#![expect(clippy::unwrap_used, reason = "a test")]

mod added_rows;
mod allowed;
mod cuda;
mod cuda_families;
mod cuda_graphs;
mod cuda_training;
mod families;
mod frozen;
mod int8;
mod invariants;
mod lstm;
mod mini;
mod not_finite;
mod seq2seq;
mod steps;
mod support;
mod tagger;
mod tagger_invariants;
mod tiny;
