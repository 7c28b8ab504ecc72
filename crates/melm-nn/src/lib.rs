//! The tensor engine of `melm`: XLM-R, RoBERTa, BERT and related encoders ([`ModelType`](config::ModelType)), trained
//! and run on the CPU or on an NVIDIA GPU.
//!
//! The crate opens Hugging Face model folders, computes predictions and gradients, updates parameters with Adam, and
//! saves folders that Python can open. Tests compare its results with those of PyTorch and transformers. Results do not
//! depend on the number of threads.
//!
//! # Predict a masked piece
//!
//! ```
//! use melm_nn::device::Device;
//! use melm_nn::mlm::{MaskedBatch, MaskedLm, MaskedLmTape, Predictions};
//! use melm_nn::weights::Checkpoint;
//!
//! # let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/weights/f32");
//! let checkpoint = Checkpoint::open(folder.as_ref())?; // config.json and model.safetensors
//! let model = MaskedLm::open(&checkpoint, 0, 1)?; // no added pieces
//!
//! let mut batch = MaskedBatch::default();
//! batch.sentences.push(&[0, 7, 4, 2], 0); // <s>, a piece, the mask, </s>
//! batch.positions.push(2); // the row of the mask
//!
//! let mut tape = MaskedLmTape::for_prediction(model.config());
//! let mut out = Predictions::default();
//! model.predict(&Device::cpu(2), &batch, 3, &mut tape, &mut out)?;
//! for candidate in out.row(0) {
//!     println!("piece {} has log-probability {}", candidate.piece, candidate.log_probability);
//! }
//! # assert_eq!(out.row(0).len(), 3);
//! # assert!(out.row(0).is_sorted_by(|a, b| a.log_probability >= b.log_probability));
//! # Ok::<(), melm_nn::Error>(())
//! ```
//!
//! # Train
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
//! batch.sentences.push(&[0, 10, 4, 12, 2], 0); // piece 4 masks piece 11
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
//!
//! # Main types
//!
//! | Type | Purpose |
//! | --- | --- |
//! | [`Device`](device::Device) | the CPU with its threads, or a GPU |
//! | [`Checkpoint`](weights::Checkpoint), [`Config`](config::Config) | an opened model folder and its configuration |
//! | [`MaskedLm`](mlm::MaskedLm) | an encoder with its masked-LM head |
//! | [`Tagger`](tagger::Tagger) | an encoder with a linear layer at the first piece of each token, and a softmax or a CRF ([`crf`]) |
//! | [`LstmLm`](lstm::LstmLm), [`Seq2Seq`](seq2seq::Seq2Seq) | an LSTM language model and an mBART, for baselines that write whole sentences |
//! | [`Packed`](packed::Packed) | a batch: the pieces of all sentences one after the other, without padding |
//! | [`Parameters`](params::Parameters), [`Gradients`](gradients::Gradients) | the tensors of a model by their Hugging Face names, and their gradients |
//! | [`Adam`](optim::Adam) | the optimiser, exactly as in torch |
//! | [`Error`] | the error of every fallible function |
//!
//! # Design
//!
//! - Each row of a matrix belongs to one piece. There are no padding rows.
//! - The masked-LM head is computed only at the masked rows. The gradient of the piece table is stored as factors and
//!   never as a dense matrix; Adam reads it block by block.
//! - A pass writes its intermediate results to a tape, which is reused. After the first step no memory is allocated.
//! - The split of a computation into tasks depends only on the shape of the data, so every number of threads gives the
//!   same bits.

mod architecture;
mod buffer;
pub mod config;
mod config_keys;
mod config_rotary;
mod cores;
pub mod crf;
#[cfg(feature = "cuda")]
pub mod cuda;
#[cfg(not(feature = "cuda"))]
#[path = "no_cuda.rs"]
pub mod cuda;
pub mod device;
pub mod draw;
pub mod dropout;
mod encoder;
mod error;
pub mod files;
pub mod gradients;
mod initial;
mod int8;
pub mod isa;
pub mod lstm;
mod math;
pub mod mlm;
mod ops;
pub mod optim;
pub mod packed;
mod parameter;
pub mod params;
mod pool;
pub mod probe;
mod product;
pub mod seq2seq;
mod split;
mod table;
pub mod tagger;
mod threads;
mod transform;
pub mod weights;

pub use error::Error;
