//! Data augmentation for named-entity recognition: from a hundred labelled sentences to a good tagger.
//!
//! The method is MELM (Zhou et al., ACL 2022). Labels are written into the sentence as markers. A masked language
//! model is fine-tuned to predict entity tokens from label and context, and writes new entities into the sentences.
//! These new sentences are called drafts. A tagger that was trained on the original sentences (gold) predicts the
//! tags of each draft. The draft is added to the training set if the prediction equals its tags.
//!
//! ```no_run
//! use melm::{Augment, Corpus, Tagger};
//!
//! fn main() -> Result<(), melm::Error> {
//!     let train = Corpus::open("train.conll")?; // cheap to clone
//!     let dev = Corpus::open("dev.conll")?;
//!
//!     let augmented = Augment::new(train) // the embedded model, the default plan
//!         .dev(dev.clone())
//!         .seed(1)
//!         .run()?;
//!
//!     let tagger = Tagger::trainer(augmented.corpus()).dev(dev).seed(1).train()?;
//!     let rates = tagger.score(&Corpus::open("test.conll")?)?.micro().rates();
//!     println!("precision {:.2}, recall {:.2}, F1 {:.2}", rates.precision, rates.recall, rates.f1);
//!
//!     augmented.write("more")?; // optional: train.augmented.conll, drafts.jsonl, plan.toml
//!     tagger.save("tagger")?; // optional: a Hugging Face folder
//!     Ok(())
//! }
//! ```
//!
//! A hundred sentences take a few minutes on two CPU cores: about two for [`Augment::run`], one for training. All
//! errors of the library convert into [`Error`]. The same seed gives the same result.
//!
//! # The main types
//!
//! - [`Corpus`]: labelled sentences. A corpus that was read from a file remembers the text and format of the file, so
//!   that more sentences can be written in the same format.
//! - [`Augment`]: settings of a run, each with a default. [`Augment::unlabelled`] adds text that a panel of taggers
//!   labels. [`Augment::run`] runs in memory. [`Augment::prepare`] returns an [`AugmentJob`](augment::AugmentJob), which
//!   can run in a folder, resume after an interruption and estimate its time.
//! - [`Augmented`]: the augmented corpus, every [`Draft`](draft::Draft) with its verdict, and counts.
//! - [`Pick`]: picks the sentences of a text that a person should label next.
//! - [`Tagger`]: trains, opens, tags, scores, saves. Saved folders open in Hugging Face transformers.
//! - [`Plan`]: all settings as one type and one TOML file.
//! - [`Device`]: the CPU or an NVIDIA GPU.
//! - [`ModelStore`]: opens pretrained models: the embedded one, a folder, or a name on the Hugging Face hub.
//!
//! # Modules by section of the paper
//!
//! | section of the paper | module |
//! | --- | --- |
//! | Algorithm 1 | [`augment`] |
//! | 2.1 labelled sequence linearization | [`linearize`], [`markers`] |
//! | 2.2 fine-tuning | [`mask`], [`entity_lm`], [`training`] |
//! | 2.3 generation | [`generate`], [`draft`] |
//! | 2.4 filtering | [`judge`], [`tagger`] |
//! | 2.5 code-mixing | [`codemix`] |
//! | the methods that the paper compares MELM with | [`methods`] |
//!
//! Other modules: [`self_training`] (labels unlabelled text), [`pick`] (picks sentences to label), [`gold_check`] (finds wrong gold tags), [`plan`] (settings), [`models`], [`hub`] and [`pieces`]
//! (pretrained models and their tokenizers), [`random`] (named random streams), [`stage`] (progress and control), [`notes`] (lines for users),
//! [`training_job`] (training in a folder), [`shard`] (parts of a large input), [`shell`] (commands as text), [`files`] (writing and hashing files).
//!
//! [`text`] (labelled text) and [`nn`] (the tensor engine) are the two crates that this crate is built on.
//!
//! Section numbers in this documentation are those of the paper. `docs/fidelity.md` lists where the paper and the
//! authors' code differ.
//!
//! The library reads neither environment variables nor the clock. The calling program passes paths and times as
//! arguments.
//!
//! # Features
//!
//! - `mini` (default): the embedded model, 44 MiB.
//! - `hub` (default): lets [`ModelStore::with_hub`] download models by name.

pub mod augment;
pub mod card;
pub mod codemix;
pub mod draft;
pub mod entity_lm;
mod error;
pub mod files;
pub mod generate;
pub mod gold_check;
pub mod hub;
pub mod judge;
pub mod linearize;
pub mod markers;
pub mod mask;
pub mod methods;
pub mod models;
pub mod names;
pub mod notes;
mod parallel;
pub mod pick;
pub mod pieces;
pub mod plan;
pub mod random;
pub mod rate;
mod related;
mod run_folder;
pub mod sample;
pub mod self_training;
pub mod shard;
pub mod shell;
pub mod stage;
pub mod tagger;
pub mod training;
pub mod training_job;
mod windows;

pub use augment::{Augment, Augmented};
pub use error::Error;
pub use melm_nn as nn;
pub use melm_nn::device::Device;
pub use melm_text as text;
pub use melm_text::{Corpus, Scores, score};
pub use methods::Method;
pub use models::ModelStore;
pub use pick::{Pick, Picked};
pub use plan::Plan;
pub use tagger::Tagger;

/// Compiles the Rust blocks of the library guide.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/guides/library.md")]
struct LibraryGuide;
