//! Compares the engine with transformers and torch. The expected numbers were computed by `tools/make_golden_nn.py`, those
//! of the tagger by `tools/make_golden_tagger.py`, of the LSTM by `tools/make_golden_lstm.py`, and of the encoder-decoder
//! by `tools/make_golden_seq2seq.py`.
#![expect(clippy::unwrap_used, reason = "a test")]

mod allowed;
mod cuda;
mod cuda_graphs;
mod cuda_training;
mod invariants;
mod lstm;
mod mini;
mod seq2seq;
mod steps;
mod support;
mod tagger;
mod tagger_invariants;
mod tiny;
