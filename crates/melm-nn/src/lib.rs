//! The tensor engine: XLM-R forward and backward over packed rows.
//!
//! A batch is a list of pieces with the ends of its sentences ([`packed`]); a row of every matrix is one piece, and
//! padding exists nowhere. [`encoder`] turns pieces into hidden rows, and gradients of hidden rows into gradients of
//! parameters; [`mlm`] puts the tied masked-LM head on top, at the masked rows only; [`tagger`] a linear layer at the
//! first pieces of tokens, with a softmax or a [`crf`] over it. Beside them, for baselines that write whole sentences:
//! [`lstm`], a language model, and [`seq2seq`], an mBART; guesses are drawn by [`draw`]. Parameters lie in one block, by their Hugging Face names
//! ([`params`]); the piece table's gradient is never written out, and [`optim`] is exact Adam all the same. Everything
//! runs on a [`device`], in memory that the first step allocates.
//!
//! ```
//! use melm_nn::config::Config;
//! use melm_nn::device::Device;
//! use melm_nn::dropout::Dropout;
//! use melm_nn::gradients::Gradients;
//! use melm_nn::mlm::{MaskedBatch, MaskedLm, MaskedLmTape, Predictions};
//! use melm_nn::optim::{Adam, AdamSettings};
//!
//! let config = Config { vocab_size: 50, hidden_size: 16, n_layers: 1, n_heads: 2, ..Config::default() };
//! let mut model = MaskedLm::random(&config, 1)?;
//! let mut batch = MaskedBatch::default();
//! batch.sentences.push(&[0, 10, 4, 12, 2], 0); // piece 4 hides piece 11
//! batch.positions.push(2);
//! batch.originals.push(11);
//!
//! let device = Device::cpu(2);
//! let mut tape = MaskedLmTape::for_training(&config);
//! let mut gradients = Gradients::new(model.parameters())?;
//! let mut adam = Adam::new(model.parameters(), AdamSettings::default())?;
//! for step in 0..30 {
//!     gradients.clear();
//!     let dropout = Dropout::new(&config, 7, step);
//!     model.accumulate(&device, &batch, 1.0, dropout, &mut tape, &mut gradients)?;
//!     adam.step(&device, 1e-2, model.parameters_mut(), &mut gradients)?;
//! }
//! let mut out = Predictions::default();
//! model.predict(&device, &batch, 3, &mut tape, &mut out)?;
//! assert_eq!(out.row(0)[0].piece, 11);
//! # Ok::<(), melm_nn::Error>(())
//! ```

pub mod buffer;
pub mod config;
pub mod crf;
pub mod cuda;
pub mod device;
pub mod draw;
pub mod dropout;
pub mod encoder;
pub mod error;
pub mod gradients;
pub mod isa;
pub mod lstm;
mod math;
pub mod mlm;
mod ops;
pub mod optim;
pub mod packed;
pub mod params;
mod pool;
pub mod probe;
mod product;
pub mod seq2seq;
mod split;
mod table;
pub mod tagger;
pub mod weights;

pub use error::Error;
