//! The names of tag ids: given by the user, or found beside the file.

use std::fs;
use std::path::Path;

use serde_json::Value;

/// Tags in the order of their ids.
pub type TagNames = Vec<String>;

/// Parses the names of tag ids: a list `O,B-PER,…`, one name on each line, a JSON array, or the names of the feature
/// `tags_key` in a `dataset_info.json` of Hugging Face. Returns `None` if the text has no names or one of them is not a
/// tag.
pub fn parse_names(text: &str, tags_key: &str) -> Option<TagNames> {
    let names = match serde_json::from_str::<Value>(text) {
        Ok(Value::Array(items)) => to_strings(&items)?,
        Ok(value) => find_feature(&value, tags_key)?,
        Err(_) => {
            let names = text.split([',', '\n']).map(|name| name.trim().to_owned());
            names.filter(|name| !name.is_empty()).collect()
        }
    };
    let are_tags = !names.is_empty() && names.iter().all(|name| crate::tag::is_tag(name));
    let is_valid = are_tags || crate::tag::are_bare_types(&names.iter().map(String::as_str));
    is_valid.then_some(names)
}

/// Returns the content of the file `FILE.names`: one name on each line.
pub fn format_names(names: &[String]) -> String {
    names.join("\n") + "\n"
}

/// The largest file with tag names, in bytes.
const MAX_NAMES: u64 = 16 << 20;

/// Looks for tag names beside `file`: in `FILE.names`, then in the `dataset_info.json` or
/// `dataset_infos.json` that Hugging Face `datasets` writes. Returns `None` if there are none.
pub fn find_names_beside(file: &Path, tags_key: &str) -> Option<TagNames> {
    let mut own = file.as_os_str().to_owned();
    own.push(".names");
    let folder = file.parent().unwrap_or(Path::new(""));
    [own.into(), folder.join("dataset_info.json"), folder.join("dataset_infos.json")]
        .into_iter()
        .filter(|path| fs::metadata(path).is_ok_and(|it| it.is_file() && it.len() <= MAX_NAMES))
        .find_map(|path| parse_names(&fs::read_to_string(path).ok()?, tags_key))
}

/// Finds the names of the feature `tags_key` at any depth of a dataset description, because versions of `datasets` nest
/// features in different ways.
fn find_feature(value: &Value, tags_key: &str) -> Option<TagNames> {
    match value {
        Value::Array(items) => items.iter().find_map(|item| find_feature(item, tags_key)),
        Value::Object(map) => match map.get(tags_key) {
            Some(feature) => find_names(feature),
            None => map.values().find_map(|inner| find_feature(inner, tags_key)),
        },
        _ => None,
    }
}

/// Finds the names in the description of a feature: an array, or an object with ids as keys.
fn find_names(value: &Value) -> Option<TagNames> {
    let map = value.as_object()?;
    match map.get("names") {
        Some(Value::Array(items)) => to_strings(items),
        Some(Value::Object(by_id)) => (0..by_id.len())
            .map(|id| Some(by_id.get(&id.to_string())?.as_str()?.to_owned()))
            .collect(),
        _ => map.values().find_map(find_names),
    }
}

/// Returns the items as strings, or `None` if one of them is not a string.
fn to_strings(items: &[Value]) -> Option<TagNames> {
    items.iter().map(|item| Some(item.as_str()?.to_owned())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_found_in_all_layouts_of_hugging_face() {
        let wanted = Some(vec!["O".to_owned(), "B-PER".to_owned()]);
        for text in [
            r#"{"features": {"ner_tags": {"feature": {"names": ["O", "B-PER"], "_type": "ClassLabel"}, "_type": "Sequence"}}}"#,
            r#"{"default": {"features": {"ner_tags": {"feature": {"names": ["O", "B-PER"]}}}}}"#,
            r#"{"ner_tags": {"sequence": {"class_label": {"names": {"0": "O", "1": "B-PER"}}}}}"#,
            r#"["O", "B-PER"]"#,
            "O,B-PER",
            "O\nB-PER\n",
        ] {
            assert_eq!(parse_names(text, "ner_tags"), wanted, "{text}");
        }
        assert_eq!(parse_names("these are, not tags", "ner_tags"), None);
        let other =
            r#"{"config": [], "features": {"chunk_tags": {"feature": {"names": ["O", "B-NP"]}}}}"#;
        assert_eq!(parse_names(other, "ner_tags"), None, "the names of another feature");
    }
}
