//! Tests of the documentation of the plan: it must agree with what the plan accepts.

use std::collections::BTreeSet;

use toml::{Table, Value};

use super::schema::describe_type;
use super::{PlanKey, schema, sections, sources};
use crate::plan::{ModelClass, ModelClasses, PlanTable, Preset};

const CLASSES: ModelClasses =
    ModelClasses { masked_lm: ModelClass::MINI, tagger: ModelClass::MINI };

fn keys() -> Vec<PlanKey> {
    sections().into_iter().flat_map(|section| section.keys).collect()
}

fn accepts(edit: &str) -> bool {
    PlanTable::new(Preset::Best, CLASSES).set(edit).is_ok()
}

#[test]
fn every_key_is_documented_in_the_order_of_the_plan() {
    let text = Preset::Best.plan(CLASSES).to_toml();
    let mut section = String::new();
    let mut expected = Vec::new();
    for line in text.lines() {
        if let Some(name) = line.strip_prefix('[') {
            section = format!("{}.", name.trim_end_matches(']'));
        } else if let Some((name, _)) = line.split_once(" = ") {
            expected.push(format!("{section}{name}"));
        }
    }
    let documented: Vec<String> = keys().into_iter().map(|key| key.key).collect();
    // TOML writes tables after the other keys of a section, so only the sets are equal. `markers.words` is empty.
    expected.push("markers.words".to_owned());
    let set = |keys: &[String]| keys.iter().cloned().collect::<BTreeSet<_>>();
    assert_eq!(set(&documented), set(&expected));
    assert_eq!(documented.len(), expected.len());
    assert_eq!(documented[..4], ["version", "seed", "method", "union"]);
}

#[test]
fn every_key_has_a_meaning_and_a_source() {
    for section in sections() {
        assert!(section.meaning.ends_with('.'), "{}", section.name);
    }
    for key in schema::sections().into_iter().flat_map(|section| section.keys) {
        let name = &key.key;
        assert!(key.meaning.ends_with('.'), "{name}: {}", key.meaning);
        // Links of rustdoc cannot be followed from the page.
        assert!(!key.meaning.contains("[`"), "{name}: {}", key.meaning);
        let source = sources::source(name);
        let source = source.unwrap_or_else(|| panic!("add `{name}` to plan/reference/sources.rs"));
        assert!(source.ends_with('.'), "{name}: {source}");
    }
    let keys = keys();
    let unused = sources::unused(keys.iter().map(|key| key.key.as_str()));
    assert!(unused.is_empty(), "entries of plan/reference/sources.rs for no key: {unused:?}");
}

#[test]
fn documented_values_are_accepted_and_others_are_not() {
    let mut n_values = 0;
    for key in keys() {
        for value in &key.values {
            n_values += 1;
            assert!(accepts(&format!("{}={}", key.key, value.value)), "{}", key.key);
            assert!(!value.meaning.is_empty(), "{} {}", key.key, value.value);
        }
        for default in &key.defaults {
            let is_table = default.value == "{}";
            assert!(is_table || accepts(&format!("{}={}", key.key, default.value)), "{}", key.key);
        }
        if !key.values.is_empty() {
            assert!(!accepts(&format!("{}=\"none of them\"", key.key)), "{}", key.key);
        }
    }
    assert!(n_values > 40, "{n_values}");
}

/// Tries values at and beyond the documented limits. Limits that depend on another key are not documented as numbers.
#[test]
fn documented_limits_are_those_of_the_plan() {
    let mut n_limits = 0;
    for key in keys() {
        let words: Vec<&str> = key.kind.split(' ').collect();
        let is_number = matches!(words.get(1), Some(&("integer" | "number")));
        if !is_number || key.kind.contains("text") {
            continue;
        }
        let is_integer = words[1] == "integer";
        let (step, beyond) = if is_integer { (0.0, 1.0) } else { (1e-9, 1e-9) };
        let after = |word: &str| {
            let at = words.iter().position(|known| *known == word)?;
            words[at + 1..].iter().find_map(|word| word.parse::<f64>().ok())
        };
        let mut limits = Vec::new();
        if let Some(least) = after("from") {
            limits.push((least, least - beyond));
        } else if let Some(bound) = after("above") {
            limits.push((bound + step, bound));
        }
        if let Some(bound) = after("to") {
            let is_open = key.kind.contains("to below");
            limits.push(if is_open { (bound - step, bound) } else { (bound, bound + beyond) });
        }
        for (inside, outside) in limits {
            n_limits += 1;
            let edit = |value: f64| {
                let value = if is_integer { format!("{value:.0}") } else { format!("{value:?}") };
                format!("{}={value}", key.key)
            };
            // The width must be a multiple of the heads, and folds need taggers: only the limits count here.
            let depends = ["mulda.width", "mulda.heads"].contains(&key.key.as_str());
            assert!(depends || accepts(&edit(inside)), "{} is refused", edit(inside));
            assert!(!accepts(&edit(outside)), "{} is accepted", edit(outside));
        }
    }
    assert!(n_limits > 60, "{n_limits}");
}

#[test]
fn types_are_described_with_their_limits() {
    for (schema, expected) in [
        (r#"{"type": "boolean"}"#, "`true` or `false`"),
        (r#"{"type": "integer", "minimum": 1}"#, "an integer from 1 on"),
        (r#"{"type": "integer", "minimum": 1, "maximum": 64}"#, "an integer from 1 to 64"),
        (r#"{"type": "integer", "minimum": 1, "maximum": 1}"#, "an integer: 1"),
        (r#"{"type": "number", "exclusiveMinimum": 0}"#, "a number above 0"),
        (
            r#"{"type": "number", "minimum": 0, "maximum": 1, "exclusiveMinimum": 0.5}"#,
            "a number above 0.5 to 1",
        ),
        (
            r#"{"type": "number", "minimum": 0, "maximum": 1, "exclusiveMaximum": 1}"#,
            "a number from 0 to below 1",
        ),
        (r#"{"type": "string", "examples": ["a", "b"]}"#, "text such as `\"a\"` or `\"b\"`"),
        (r#"{"anyOf": [{"type": "integer"}, {"type": "string"}]}"#, "an integer, or text"),
    ] {
        assert_eq!(describe_type(&serde_json::from_str(schema).unwrap()), expected);
    }
}

#[test]
fn defaults_are_grouped_by_preset_size_and_family() {
    let keys = keys();
    let defaults = |name: &str| -> Vec<(String, String)> {
        let key = keys.iter().find(|key| key.key == name).unwrap();
        let pair =
            |default: &super::DefaultValue| (default.value.clone(), default.applies_to.clone());
        key.defaults.iter().map(pair).collect()
    };
    let expected = |pairs: &[(&str, &str)]| -> Vec<(String, String)> {
        pairs.iter().map(|(value, place)| ((*value).to_owned(), (*place).to_owned())).collect()
    };
    assert_eq!(defaults("seed"), expected(&[("1", "")]));
    assert_eq!(
        defaults("self_training.panel"),
        expected(&[("5", "`best`, `paper` and `reference-code`"), ("3", "`quick`")])
    );
    let rates = defaults("tagger.learning_rate");
    assert_eq!(
        rates[..2],
        expected(&[
            ("2e-4", "`best` and `quick` with a small model"),
            ("2e-5", "`best` and `quick` with a base or large model; `paper` and `reference-code`"),
        ])
    );
    let bert = ("3e-5".to_owned(), "`best` and `quick` with a base `bert` model".to_owned());
    assert!(rates.contains(&bert), "{rates:?}");
    // The values are TOML.
    for key in &keys {
        for default in &key.defaults {
            let parsed = format!("value = {}", default.value).parse::<Table>();
            assert!(parsed.is_ok_and(|table| !matches!(table["value"], Value::Datetime(_))));
        }
    }
}

#[test]
fn keys_are_found_by_name_or_section() {
    let names = |name: &str| -> Vec<String> {
        super::find("a test", name).unwrap().into_iter().map(|key| key.key).collect()
    };
    assert_eq!(names("tagger.head"), ["tagger.head"]);
    let filter = ["filter.mode", "filter.threshold", "filter.judges", "filter.votes"];
    assert_eq!(names("filter"), filter);
    assert_eq!(names("generate.mask").len(), 3);
    let error = super::find("a test", "tagger.hea").unwrap_err().to_string();
    assert!(error.contains("a test") && error.contains("did you mean `tagger.head`?"), "{error}");
    assert!(super::find("a test", "").is_err());
}
