//! An encoder-decoder with the architecture of mBART, for the baseline `MulDA` (Liu et al. 2021).
//!
//! Layers are pre-norm. Position embeddings are learned, and the first position uses row 2 of their table. There is a
//! norm after the embedding, one after the encoder and one after the decoder. Encoder, decoder and output layer share
//! one embedding table, and the output layer has a bias that is stored. [`Seq2Seq::open`] reads Hugging Face folders of
//! mBART and mBART-50. [`Seq2Seq::sample`] and [`Seq2Seq::search`] follow `generate` in transformers.
//!
//! ```
//! use melm_nn::device::Device;
//! use melm_nn::gradients::Gradients;
//! use melm_nn::optim::{Adam, AdamSettings};
//! use melm_nn::seq2seq::*;
//!
//! let stack = StackConfig { n_layers: 1, n_heads: 2, inner: 32 };
//! let config = Seq2SeqConfig {
//!     vocab_size: 20, width: 16, encoder: stack, decoder: stack, max_pieces: 16, dropout: 0.0, attention_dropout: 0.0,
//!     scales_embedding: true, init_std: 0.1, pad_id: 1, eos_id: 2,
//! };
//! let mut model = Seq2Seq::random(&config, 1)?;
//! let mut batch = Seq2SeqBatch::default();
//! batch.push(&[7, 8, 2], &[8, 7, 2], 0);
//! let (device, mut tape) = (Device::cpu(1), Seq2SeqTape::default());
//! let mut gradients = Gradients::new(model.parameters())?;
//! let mut adam = Adam::new(model.parameters(), AdamSettings::default())?;
//! for step in 0..40 {
//!     gradients.clear();
//!     let dropout = model.dropout(3, step);
//!     model.accumulate(&device, &batch, 1.0 / 3.0, dropout, &mut tape, &mut gradients)?;
//!     adam.step(&device, 1e-2, model.parameters_mut(), &mut gradients)?;
//! }
//! let generation = GenerationConfig { start: 2, forced_first: None, forced_last: None, max_length: 10 };
//! let beams = BeamSearch { n_beams: 2, length_penalty: 1.0, stopping: EarlyStopping::Heuristic };
//! let found = model.search(&device, &[7, 8, 2], &generation, &beams)?;
//! assert_eq!(found[0].pieces, [8, 7, 2]);
//! # Ok::<(), melm_nn::Error>(())
//! ```

mod attention;
mod config;
mod decode;
mod feed_forward;
mod generate;
mod load;
mod model;
mod pass;
mod stack;

pub use config::{SHARED, Seq2SeqConfig, StackConfig};
pub use generate::{BeamSearch, EarlyStopping, Generated, GenerationConfig};
pub use model::{Seq2Seq, Seq2SeqBatch, Seq2SeqTape};
