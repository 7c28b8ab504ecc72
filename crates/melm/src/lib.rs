//! The method: from labelled sentences to more labelled sentences.
//!
//! So far the crate holds what every stage needs: named random streams ([`run`]) and the draw of
//! a low-resource training set ([`sample`]).

pub mod run;
pub mod sample;
