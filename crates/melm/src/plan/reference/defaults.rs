//! The values that the presets give to each key, for every family and size of a model.

use std::collections::BTreeMap;

use melm_nn::config::ModelType;
use toml::{Table, Value};

use super::DefaultValue;
use crate::plan::{ModelClass, ModelClasses, ModelSize, Preset};

const SIZES: [(&str, ModelSize); 3] =
    [("small", ModelSize::Small), ("base", ModelSize::Base), ("large", ModelSize::Large)];

/// The plans of all presets, for all families and sizes.
pub(super) struct PresetValues {
    plans: Vec<PresetPlan>,
}

struct PresetPlan {
    preset: &'static str,
    size: &'static str,
    /// `None` for the family of XLM-R, which stands for all families with the same value.
    family: Option<&'static str>,
    values: BTreeMap<String, String>,
}

/// A value and the plans that have it. Plans of families with a value of their own are apart from the others.
struct Group<'a> {
    value: &'a str,
    family: Option<&'static str>,
    plans: Vec<&'a PresetPlan>,
}

impl PresetValues {
    pub(super) fn new() -> Self {
        let others = ModelType::ALL.into_iter().filter(|family| *family != ModelType::XlmRoberta);
        let families = [None].into_iter().chain(others.map(Some));
        let mut plans = Vec::new();
        for family in families {
            for (preset, settings) in Preset::NAMES {
                for (size, model_size) in SIZES {
                    let class = ModelClass {
                        family: family.unwrap_or(ModelType::XlmRoberta),
                        size: model_size,
                    };
                    let plan = settings.plan(ModelClasses::both(class));
                    let table = Table::try_from(plan).expect("a plan is a table");
                    let mut values = BTreeMap::new();
                    flatten("", &table, &mut values);
                    plans.push(PresetPlan {
                        preset,
                        size,
                        family: family.map(ModelType::name),
                        values,
                    });
                }
            }
        }
        Self { plans }
    }

    /// Returns the values of a key and where they apply.
    pub(super) fn defaults(&self, key: &str) -> Vec<DefaultValue> {
        let mut groups: Vec<Group<'_>> = Vec::new();
        for plan in &self.plans {
            let value = value_of(plan, key);
            if plan.family.is_some() && value == self.usual_value(plan, key) {
                continue;
            }
            let same = |group: &&mut Group<'_>| group.value == value && group.family == plan.family;
            match groups.iter_mut().find(same) {
                Some(group) => group.plans.push(plan),
                None => groups.push(Group { value, family: plan.family, plans: vec![plan] }),
            }
        }
        let is_only = groups.len() == 1;
        let default_value = |group: &Group<'_>| DefaultValue {
            value: group.value.to_owned(),
            applies_to: if is_only { String::new() } else { describe(group) },
        };
        groups.iter().map(default_value).collect()
    }

    /// Returns the value for XLM-R with the preset and the size of `plan`.
    fn usual_value(&self, plan: &PresetPlan, key: &str) -> &str {
        let usual = self.plans.iter().find(|other| {
            other.family.is_none() && other.preset == plan.preset && other.size == plan.size
        });
        value_of(usual.expect("XLM-R has all presets and sizes"), key)
    }
}

fn value_of<'a>(plan: &'a PresetPlan, key: &str) -> &'a str {
    plan.values.get(key).map_or("{}", String::as_str)
}

/// Stores every value as TOML under its key with all sections. Tables that are empty have no entry.
fn flatten(prefix: &str, table: &Table, values: &mut BTreeMap<String, String>) {
    for (name, value) in table {
        let key = if prefix.is_empty() { name.clone() } else { format!("{prefix}.{name}") };
        match value {
            Value::Table(inner) => flatten(&key, inner, values),
            Value::Float(number) => drop(values.insert(key, spell_float(*number))),
            value => drop(values.insert(key, value.to_string())),
        }
    }
}

/// Writes a number as people write it: `2e-5`, not `0.00002`.
fn spell_float(number: f64) -> String {
    if number != 0.0 && number.abs() < 1e-3 { format!("{number:e}") } else { format!("{number:?}") }
}

/// Describes the plans of a group, such as "`best` and `quick` with a small model; `paper`".
fn describe(group: &Group<'_>) -> String {
    let mut parts: Vec<(Vec<&str>, Vec<String>)> = Vec::new();
    for (preset, _) in Preset::NAMES {
        let with_preset = group.plans.iter().filter(|plan| plan.preset == preset);
        let sizes: Vec<&str> = with_preset.map(|plan| plan.size).collect();
        if sizes.is_empty() {
            continue;
        }
        let preset = format!("`{preset}`");
        match parts.iter_mut().find(|(known, _)| *known == sizes) {
            Some((_, presets)) => presets.push(preset),
            None => parts.push((sizes, vec![preset])),
        }
    }
    let family = group.family.map(|family| format!(" `{family}`")).unwrap_or_default();
    let texts = parts.iter().map(|(sizes, presets)| {
        let presets = join(presets, "and");
        if sizes.len() == SIZES.len() && family.is_empty() {
            presets
        } else {
            format!("{presets} with a {}{family} model", join(sizes, "or"))
        }
    });
    texts.collect::<Vec<_>>().join("; ")
}

/// Joins texts as in a sentence: `a, b and c`.
fn join(texts: &[impl AsRef<str>], word: &str) -> String {
    let texts: Vec<&str> = texts.iter().map(AsRef::as_ref).collect();
    match texts.as_slice() {
        [first @ .., last] if !first.is_empty() => format!("{} {word} {last}", first.join(", ")),
        texts => texts.concat(),
    }
}
