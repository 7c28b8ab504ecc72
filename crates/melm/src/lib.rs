//! The method: from labelled sentences to more labelled sentences.
//!
//! So far the crate holds what every stage needs: named random streams ([`run`]), a stage's place in a run ([`stage`]),
//! the draw of a low-resource training set ([`sample`]), models found by name ([`hub`]) and opened ([`model`]), tokens
//! cut into pieces with their alignment ([`pieces`]), long sentences in [`windows`]; the one training loop ([`fit`])
//! and the [`tagger`].

pub mod draft;
pub mod entity_lm;
pub mod error;
pub mod files;
pub mod fit;
pub mod folder;
pub mod generate;
pub mod hub;
pub mod linearize;
pub mod markers;
pub mod mask;
pub mod model;
pub mod pieces;
pub mod plan;
mod related;
pub mod run;
pub mod sample;
pub mod stage;
pub mod tagger;
pub mod windows;

pub use error::Error;
