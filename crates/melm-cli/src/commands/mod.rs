//! The commands, one file each.

pub(crate) mod augment;
pub(crate) mod check;
pub(crate) mod codemix;
pub(crate) mod completions;
pub(crate) mod config;
pub(crate) mod convert;
pub(crate) mod filter;
pub(crate) mod finetune;
pub(crate) mod generate;
pub(crate) mod merge;
pub(crate) mod pick;
pub(crate) mod report;
pub(crate) mod reproduce;
pub(crate) mod sample;
pub(crate) mod score;
pub(crate) mod tag;
pub(crate) mod train;
pub(crate) mod trial;
