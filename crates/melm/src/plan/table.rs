//! The plan as a table of keys. Files, `--set` and flags change single keys.

use serde::Deserialize;
use strsim::levenshtein;
use toml::{Table, Value};

use super::{ModelClasses, Plan, Preset};
use crate::Error;

/// The only section whose keys are not fixed. It has the related words of each entity type.
const FREE_SECTION: &str = "markers.words.";

/// The longest key for which a similar one is looked for, in bytes. It is longer than every key.
const LONGEST_KEY: usize = 200;

/// The table of a plan. It always contains every key, so that unknown keys can be recognised.
#[derive(Clone, Debug, PartialEq)]
pub struct PlanTable {
    table: Table,
    /// The origin of the last edit, for error messages.
    place: String,
}

impl PlanTable {
    /// Creates the table of a preset.
    pub fn new(preset: Preset, classes: ModelClasses) -> Self {
        let table = Table::try_from(preset.plan(classes)).expect("a plan is a table");
        Self { table, place: "the preset".to_owned() }
    }

    /// Sets the keys that a TOML file contains. `text` is the content of the file. Error messages contain `name`. Fails
    /// at the first unknown key or invalid value.
    pub fn merge_toml(&mut self, name: &str, text: &str) -> Result<(), Error> {
        self.place = format!("`{name}`");
        let edits: Table = text.parse().map_err(|error: toml::de::Error| Error::Setting {
            place: self.place.clone(),
            message: describe_toml(&error),
        })?;
        self.merge(&edits, "")?;
        self.plan().map(drop)
    }

    fn merge(&mut self, edits: &Table, prefix: &str) -> Result<(), Error> {
        for (name, value) in edits {
            let key = if prefix.is_empty() { name.clone() } else { format!("{prefix}.{name}") };
            match value {
                Value::Table(inner) => self.merge(inner, &key)?,
                value => self.insert(&key, value.clone())?,
            }
        }
        Ok(())
    }

    /// Sets one key from `key=value`, the argument of `--set`. A value that is not valid TOML is read as a string.
    pub fn set(&mut self, edit: &str) -> Result<(), Error> {
        self.place = format!("`--set {edit}`");
        let Some((key, text)) = edit.split_once('=') else {
            let message = "expected `key=value`".to_owned();
            return Err(Error::Setting { place: self.place.clone(), message });
        };
        let parsed = format!("value = {}", text.trim()).parse::<Table>();
        let parsed = parsed.ok().and_then(|mut table| table.remove("value"));
        self.insert(key.trim(), parsed.unwrap_or_else(|| Value::String(text.trim().to_owned())))?;
        self.plan().map(drop)
    }

    /// Sets one key to a value. `place` is the origin of the edit, such as a flag, for error messages.
    pub(crate) fn set_value(&mut self, place: &str, key: &str, value: Value) -> Result<(), Error> {
        self.place = format!("`{place}`");
        self.insert(key, value)?;
        self.plan().map(drop)
    }

    fn insert(&mut self, key: &str, value: Value) -> Result<(), Error> {
        if let Some(words) = key.strip_prefix(FREE_SECTION)
            && let Some(table) = self.table["markers"]["words"].as_table_mut()
        {
            table.insert(words.to_owned(), value);
            return Ok(());
        }
        let mut known = Vec::new();
        list_keys(&self.table, "", &mut known);
        let unknown = unknown_key(&self.place, key, &known);
        let mut parts = key.split('.');
        let mut place = parts.next().and_then(|part| self.table.get_mut(part));
        for part in parts {
            place = place.and_then(|value| value.get_mut(part));
        }
        match place {
            None | Some(Value::Table(_)) => Err(unknown),
            Some(place) => {
                // An integer is accepted where the value of the key is a float.
                *place = match (&*place, value) {
                    (Value::Float(_), Value::Integer(n)) => Value::Float(n as f64),
                    (_, value) => value,
                };
                Ok(())
            }
        }
    }

    /// Converts the table to a plan and checks it. Every edit calls this too, so that an error can name the origin of
    /// the edit.
    pub fn plan(&self) -> Result<Plan, Error> {
        let plan = Plan::deserialize(self.table.clone()).map_err(|error| Error::Setting {
            place: self.place.clone(),
            message: error.to_string().trim_end().replace('\n', " "),
        })?;
        plan.check(&self.place)?;
        Ok(plan)
    }
}

impl Plan {
    /// The plan as TOML text.
    pub fn to_toml(&self) -> String {
        toml::to_string(self).expect("a plan is a table")
    }
}

/// Describes an error of a TOML file: the line with a caret, and the message, which has no line feeds of its own.
pub fn describe_toml(error: &toml::de::Error) -> String {
    let (mut text, message) = (error.to_string(), error.message());
    if message.contains('\n') {
        text = text.replace(message, &message.replace('\n', "\\n"));
    }
    text.trim_end().to_owned()
}

/// Returns the error for a key that is not in `known`, with the most similar known key as a hint. `place` is the origin of
/// the key.
pub(super) fn unknown_key(place: &str, key: &str, known: &[String]) -> Error {
    // A key of a hostile file may have megabytes, and the distance takes time in proportion.
    let known = if key.len() > LONGEST_KEY { &[] } else { known };
    let with_distance = known.iter().map(|known| (levenshtein(known, key), known));
    let nearest = with_distance.min_by_key(|(distance, _)| *distance);
    let similar = nearest.filter(|(distance, _)| *distance <= 2 + key.len() / 4);
    let hint = similar.map(|(_, known)| format!("; did you mean `{known}`?")).unwrap_or_default();
    Error::UnknownKey { place: place.to_owned(), key: key.to_owned(), hint }
}

/// Lists all keys that have a value, with the names of their sections.
fn list_keys(table: &Table, prefix: &str, keys: &mut Vec<String>) {
    for (name, value) in table {
        let key = if prefix.is_empty() { name.clone() } else { format!("{prefix}.{name}") };
        match value {
            Value::Table(inner) => list_keys(inner, &key, keys),
            _ => keys.push(key),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::ModelClass;
    use super::*;

    fn table() -> PlanTable {
        PlanTable::new(Preset::Best, ModelClasses::both(ModelClass::MINI))
    }

    #[test]
    fn a_saved_plan_is_read_back() {
        for (_, preset) in Preset::NAMES {
            for class in [ModelClass::MINI, ModelClass::XLM_R_BASE] {
                let plan = preset.plan(ModelClasses::both(class));
                let mut table = table();
                table.merge_toml("plan.toml", &plan.to_toml()).unwrap();
                assert_eq!(table.plan().unwrap(), plan);
            }
        }
    }

    #[test]
    fn later_edits_win_and_reach_any_key() {
        let mut table = table();
        table.merge_toml("plan.toml", "seed = 7\n[tagger]\nclip = 2\nhead = 'linear'\n").unwrap();
        table.set("tagger.budget=300 updates").unwrap();
        table.set("tagger.freeze=[]").unwrap();
        table.merge_toml("words.toml", "[markers.words]\nPER = ['name']\n").unwrap();
        table.set_value("--seed 9", "seed", Value::Integer(9)).unwrap();
        let plan = table.plan().unwrap();
        assert_eq!(
            (plan.seed, plan.tagger.training.budget.to_string().as_str()),
            (9, "300 updates")
        );
        assert_eq!(plan.markers.words["PER"], ["name"]);
        assert!(
            (plan.tagger.training.clip - 2.0).abs() < 1e-12
                && plan.tagger.training.freeze.0.is_empty()
        );
    }

    #[test]
    fn invalid_edits_are_refused_with_their_origin_and_the_nearest_key() {
        let mut plan = table();
        for (edit, expected) in [
            ("tagger.buget=3 epochs", "did you mean `tagger.budget`?"),
            ("tagger=3", "a plan has no key `tagger`"),
            ("seed", "expected `key=value`"),
            ("zzzzzz=1", "a plan has no key"),
        ] {
            let error = plan.set(edit).unwrap_err().to_string();
            assert!(error.contains(expected) && error.contains(edit), "{error}");
        }
        for (edit, expected) in [
            ("tagger.budget=0 epochs", "is not a valid budget"),
            ("tagger.head=tree", "unknown variant `tree`"),
            ("tagger.learning_rate=-1", "`tagger.learning_rate` must be a number above 0"),
            ("seed=-1", "seed"),
            ("tagger.batch_size=0", "batch_size"),
        ] {
            let error = table().set(edit).unwrap_err().to_string();
            assert!(error.contains(expected) && error.contains(edit), "{error}");
        }
        assert!(plan.merge_toml("a.toml", "seed = [").unwrap_err().to_string().contains("a.toml"));
    }
}
