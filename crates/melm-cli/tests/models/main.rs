//! Runs the commands that use a model, with a tiny random model.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod augment;
mod cards;
mod drafts;
mod errors;
mod experiments_with_text;
mod families;
mod faults;
mod formats;
mod free_generation;
mod hostile_runs;
mod interrupted;
mod languages;
mod limits;
mod mistakes;
mod paper_tables;
mod pick;
mod report;
mod report_formats;
mod reproduce;
mod reproducible;
mod shards;
mod stages;
mod support;
mod tag_offsets;
mod tagger;
mod unknown_languages;
mod unlabelled;
mod warnings;
