//! The tagger: the encoder, a linear layer at the first piece of every token, and a softmax or a CRF over the scores of
//! this layer.
//!
//! Dropout is applied before the classifier, as in Hugging Face's `XLMRobertaForTokenClassification`. The tensors of
//! the CRF have the names that `pytorch-crf` uses. Tags are numbers here; the names of the tags are only needed for
//! saving.
//!
//! ```
//! use melm_nn::config::Config;
//! use melm_nn::device::Device;
//! use melm_nn::dropout::Dropout;
//! use melm_nn::gradients::Gradients;
//! use melm_nn::optim::{Adam, AdamSettings};
//! use melm_nn::tagger::{HeadKind, TaggedBatch, Tagger, TaggerSettings, TaggerTape, Tagging};
//!
//! let config = Config { vocab_size: 50, hidden_size: 16, n_layers: 1, n_heads: 2, ..Config::default() };
//! let settings = TaggerSettings { n_tags: 3, kind: HeadKind::Crf, allowed: None };
//! let mut tagger = Tagger::random(&config, settings, 1)?;
//! let mut batch = TaggedBatch::default();
//! batch.push(0, &[0, 10, 11, 12, 2], &[1, 3], &[2, 0]); // two tokens; pieces 10 and 11 are the first token
//!
//! let device = Device::cpu(2);
//! let mut tape = TaggerTape::for_training(&config);
//! let mut gradients = Gradients::new(tagger.parameters())?;
//! let mut adam = Adam::new(tagger.parameters(), AdamSettings::default())?;
//! for step in 0..30 {
//!     gradients.clear();
//!     let dropout = Dropout::new(&config, 7, step);
//!     tagger.accumulate(&device, &batch, 1.0, dropout, &mut tape, &mut gradients)?;
//!     adam.step(&device, 1e-2, tagger.parameters_mut(), &mut gradients)?;
//! }
//! let (mut emissions, mut tagging) = (Vec::new(), Tagging::default());
//! tagger.emissions(&device, &batch, &mut tape, &mut emissions)?;
//! tagger.decode(&emissions, &mut tape, &mut tagging)?;
//! assert_eq!(tagging.tags, [2, 0]);
//! # Ok::<(), melm_nn::Error>(())
//! ```

mod batch;
mod decoder;
mod head;
mod load;
mod loss;
mod model;

pub use batch::TaggedBatch;
pub use decoder::Decoder;
pub use head::TaggerTape;
pub use model::{HeadKind, Int8Weights, Tagger, TaggerSettings, Tagging};

/// The largest number of tags. A table with a number for each pair of them takes 1 GiB in `f32`.
pub const MAX_TAGS: usize = 16_384;
/// The largest number of tags of a CRF on a GPU (`MOST_TAGS` in `tagger.cu`).
pub const MAX_GPU_CRF_TAGS: usize = 512;
