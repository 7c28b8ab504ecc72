//! Reads the JSON schema of [`Plan`], which is derived from the types and doc comments of the settings.

use schemars::generate::SchemaSettings;
use serde_json::Value;

use super::{AllowedValue, PlanKey, PlanSection};
use crate::plan::Plan;

/// Returns the sections of the plan. The defaults and sources of their keys are still empty.
pub(super) fn sections() -> Vec<PlanSection> {
    let settings = SchemaSettings::draft2020_12().for_serialize().with(|settings| {
        settings.inline_subschemas = true;
    });
    let schema = settings.into_generator().into_root_schema_for::<Plan>().to_value();
    let mut top = PlanSection {
        name: String::new(),
        meaning: "Settings of the whole run.".to_owned(),
        keys: Vec::new(),
    };
    let mut sections = Vec::new();
    for (name, property) in properties(&schema) {
        if property["properties"].is_object() {
            let mut keys = Vec::new();
            collect_keys(name, property, &mut keys);
            let meaning = text(property, "description");
            sections.push(PlanSection { name: name.to_owned(), meaning, keys });
        } else {
            top.keys.push(plan_key(name, property));
        }
    }
    sections.insert(0, top);
    sections
}

/// Returns the fields of a struct in their order. The list `required` has this order; `properties` is sorted by name.
fn properties(schema: &Value) -> Vec<(&str, &Value)> {
    let names = schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str);
    names.map(|name| (name, &schema["properties"][name])).collect()
}

fn collect_keys(prefix: &str, schema: &Value, keys: &mut Vec<PlanKey>) {
    for (name, property) in properties(schema) {
        let key = format!("{prefix}.{name}");
        if property["properties"].is_object() {
            collect_keys(&key, property, keys);
        } else {
            keys.push(plan_key(&key, property));
        }
    }
}

fn plan_key(key: &str, schema: &Value) -> PlanKey {
    PlanKey {
        key: key.to_owned(),
        meaning: text(schema, "description"),
        kind: describe_type(schema),
        values: allowed_values(schema),
        defaults: Vec::new(),
        source: "",
    }
}

/// Returns a text of a schema, with its lines joined.
fn text(schema: &Value, name: &str) -> String {
    schema[name].as_str().unwrap_or_default().replace('\n', " ")
}

/// Returns the variants of an enum.
fn allowed_values(schema: &Value) -> Vec<AllowedValue> {
    let variants = schema["oneOf"].as_array().into_iter().flatten();
    variants
        .map(|variant| AllowedValue {
            value: variant["const"].to_string(),
            meaning: text(variant, "description"),
        })
        .collect()
}

/// Returns the type of a value in words, with its limits or examples.
pub(super) fn describe_type(schema: &Value) -> String {
    if let Some(variants) = schema["anyOf"].as_array() {
        return variants.iter().map(describe_type).collect::<Vec<_>>().join(", or ");
    }
    if schema["oneOf"].is_array() {
        return "one of the values below".to_owned();
    }
    match schema["type"].as_str() {
        Some("boolean") => "`true` or `false`".to_owned(),
        Some("integer") => format!("an integer{}", describe_limits(schema)),
        Some("number") => format!("a number{}", describe_limits(schema)),
        Some("string") => format!("text{}", describe_examples(schema)),
        Some("array") => match schema["maxItems"].as_u64() {
            Some(n) => format!("a list of {n} numbers{}", describe_examples(schema)),
            None => "a list of texts".to_owned(),
        },
        Some("object") => "a table with a list of texts for each name".to_owned(),
        _ => unreachable!("the schema of a plan has no other types, as a test checks: {schema}"),
    }
}

fn describe_limits(schema: &Value) -> String {
    let limit = |name: &str| schema[name].as_f64();
    if let Some(only) = limit("minimum")
        && limit("maximum") == Some(only)
    {
        return format!(": {only}");
    }
    let lower = match (limit("exclusiveMinimum"), limit("minimum")) {
        (Some(bound), _) => format!(" above {bound}"),
        (None, Some(bound)) => format!(" from {bound}"),
        (None, None) => String::new(),
    };
    match (limit("exclusiveMaximum"), limit("maximum")) {
        (Some(bound), _) => format!("{lower} to below {bound}"),
        (None, Some(bound)) => format!("{lower} to {bound}"),
        (None, None) if lower.starts_with(" from") => format!("{lower} on"),
        (None, None) => lower,
    }
}

fn describe_examples(schema: &Value) -> String {
    let examples = schema["examples"].as_array().into_iter().flatten();
    let texts: Vec<String> = examples.map(|example| format!("`{}`", spell(example))).collect();
    if texts.is_empty() { String::new() } else { format!(" such as {}", texts.join(" or ")) }
}

/// Writes an example as TOML.
fn spell(example: &Value) -> String {
    match example.as_array() {
        Some(items) => {
            let items: Vec<String> = items.iter().map(ToString::to_string).collect();
            format!("[{}]", items.join(", "))
        }
        None => example.to_string(),
    }
}
