//! The commands that use a model as a user meets them, on a tiny model drawn at random.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod augment;
mod drafts;
mod interrupted;
mod languages;
mod limits;
mod reproduce;
mod stages;
mod support;
mod tagger;
mod written;
