//! The engine held to what transformers and torch compute; `tools/make_golden_nn.py` made the numbers, those
//! of the tagger `tools/make_golden_tagger.py`, of the LSTM `tools/make_golden_lstm.py`,
//! of the encoder-decoder `tools/make_golden_seq2seq.py`.
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
