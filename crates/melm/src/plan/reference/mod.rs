//! The documentation of every key of the plan, for `docs/reference/settings.md` and `melm config show --explain`.
//!
//! Meanings and allowed values come from the doc comments and types of the settings, through their JSON schema.
//! Defaults come from the presets. Only the sources of the values are written by hand, in `sources.rs`.

mod defaults;
mod schema;
mod sources;
#[cfg(test)]
mod tests;

use super::table::unknown_key;
use crate::Error;

/// A section of the plan, with the documentation of its keys.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlanSection {
    /// The name of the section, such as `tagger`. Empty for the keys that are in no section.
    pub name: String,
    /// What the settings of the section are for.
    pub meaning: String,
    /// The keys, in the order of `melm config show`.
    pub keys: Vec<PlanKey>,
}

/// The documentation of one key of the plan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlanKey {
    /// The key with its section, such as `tagger.head`.
    pub key: String,
    /// What the key means.
    pub meaning: String,
    /// The type of the value, with its limits: `an integer from 1 to 64`.
    pub kind: String,
    /// The allowed values, if there are only a few.
    pub values: Vec<AllowedValue>,
    /// The value of each preset.
    pub defaults: Vec<DefaultValue>,
    /// Where the values of the presets come from: a section of the paper, a measurement, a convention. Pages are
    /// named by their path in the repository, such as `docs/log.md`.
    pub source: &'static str,
}

/// A value that a key may have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AllowedValue {
    /// The value as TOML.
    pub value: String,
    /// What it means.
    pub meaning: String,
}

/// A value that some presets give to a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DefaultValue {
    /// The value as TOML.
    pub value: String,
    /// The presets and models with this value. Empty if all have it.
    pub applies_to: String,
}

/// Returns the documentation of all keys, by section.
pub fn sections() -> Vec<PlanSection> {
    let plans = defaults::PresetValues::new();
    let mut sections = schema::sections();
    for key in sections.iter_mut().flat_map(|section| &mut section.keys) {
        key.defaults = plans.defaults(&key.key);
        key.source = sources::source(&key.key).expect("a test checks that every key has a source");
    }
    sections
}

/// Returns the documentation of one key, or of all keys of a section. `name` is a key such as `tagger.head` or a section
/// such as `tagger` or `finetune.mask`. Fails if there is neither; the error names `place` as the origin of the name.
pub fn find(place: &str, name: &str) -> Result<Vec<PlanKey>, Error> {
    let keys: Vec<PlanKey> = sections().into_iter().flat_map(|section| section.keys).collect();
    let known: Vec<String> = keys.iter().map(|key| key.key.clone()).collect();
    let belongs = |key: &PlanKey| {
        let rest = key.key.strip_prefix(name);
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
    };
    let found: Vec<PlanKey> = keys.into_iter().filter(belongs).collect();
    if found.is_empty() { Err(unknown_key(place, name, &known)) } else { Ok(found) }
}
