//! The method: from labelled sentences to more labelled sentences.
//!
//! In the order of the paper: [`markers`] and [`linearize`] (2.1), [`mask`] and [`entity_lm`] (2.2), [`generate`] (2.3),
//! [`codemix`] (2.5).
//! Around them: named random streams ([`random`]), a stage's place in a run ([`stage`]), models found by name ([`hub`]) and
//! opened ([`model`]), tokens cut into pieces with their alignment ([`pieces`]), the one
//! training loop ([`training`]), the [`tagger`], and all settings in one [`plan`]. The crate
//! `melm-eval` compares methods with each other.

pub mod augment;
pub mod baselines;
pub mod codemix;
pub mod draft;
pub mod entity_lm;
pub mod error;
pub mod files;
pub mod free_generation;
pub mod generate;
pub mod hub;
pub mod judge;
pub mod linearize;
pub mod markers;
pub mod mask;
pub mod models;
pub mod pieces;
pub mod plan;
pub mod random;
pub mod rate;
mod related;
pub mod run_folder;
pub mod sample;
pub mod stage;
pub mod tagger;
pub mod training;
pub mod training_job;
mod windows;

pub use augment::{Augment, Augmented};
pub use error::Error;
pub use melm_text::{Corpus, Scores, score};
pub use tagger::Tagger;
