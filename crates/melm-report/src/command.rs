//! The command that repeats a run.

use melm::shell::melm_command;
use serde_json::Value;

use crate::visible::visible;

/// The command line of a run.
pub(crate) struct CommandLine {
    /// The command, as one line for a shell.
    pub(crate) text: String,
    /// True if the command is the recorded one.
    pub(crate) is_recorded: bool,
}

impl CommandLine {
    /// Returns the recorded command, or the one that `rebuild` puts together. `record` is the content of `run.json` or
    /// `command.json`.
    pub(crate) fn new(record: &Value, rebuild: impl FnOnce() -> Vec<String>) -> Self {
        let recorded = record["arguments"].as_array().map(|all| {
            all.iter().filter_map(|one| one.as_str().map(ToOwned::to_owned)).collect::<Vec<_>>()
        });
        let is_recorded = recorded.is_some();
        let words = recorded.unwrap_or_else(rebuild);
        Self { text: visible(&melm_command(&words)), is_recorded }
    }
}

/// Puts the arguments of `melm augment` together from `run.json`. The settings are those of `plan.toml`.
pub(crate) fn rebuild_augment(record: &Value, folder: &str) -> Vec<String> {
    let files = |key: &str| -> Vec<String> {
        let parts = match &record[key] {
            Value::Array(parts) => parts.clone(),
            one => vec![one.clone()],
        };
        let name = |part: &Value| {
            let file = part["file"].as_str()?;
            let language = part["language"].as_str().map(|code| format!("{code}="));
            Some(language.unwrap_or_default() + file)
        };
        parts.iter().filter_map(name).collect()
    };
    let mut words = vec!["augment".to_owned()];
    words.extend(files("train"));
    let mut add = |option: &str, values: Vec<String>| {
        words.extend(values.into_iter().flat_map(|value| [option.to_owned(), value]));
    };
    add("--dev", files("dev"));
    let text = &record["text"];
    for (option, key) in [("--unlabelled", "files"), ("--held-out", "held_out")] {
        let names = text[key].as_array().into_iter().flatten();
        let names = names.filter_map(|file| file["file"].as_str().map(ToOwned::to_owned));
        add(option, names.collect());
    }
    add("--config", vec![format!("{}/plan.toml", folder.trim_end_matches('/'))]);
    add("-o", vec!["again".to_owned()]);
    words
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_recorded_command_is_quoted_for_a_shell() {
        let record = json!({ "arguments": ["augment", "a b.conll", "--set", "x=\"it's\""] });
        let line = CommandLine::new(&record, Vec::new);
        assert_eq!(line.text, r#"melm augment 'a b.conll' --set 'x="it'\''s"'"#);
        assert!(line.is_recorded);
    }

    #[test]
    fn a_missing_command_is_put_together() {
        let record = json!({
            "train": [{ "file": "a.conll", "language": "en" }],
            "dev": null,
            "text": { "files": [{ "file": "t.txt" }], "held_out": [] },
        });
        let line = CommandLine::new(&record, || rebuild_augment(&record, "more/"));
        assert_eq!(
            line.text,
            "melm augment en=a.conll --unlabelled t.txt --config more/plan.toml -o again"
        );
        assert!(!line.is_recorded);
    }
}
