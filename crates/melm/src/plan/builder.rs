//! Builds a plan from a preset and changes to it.

use toml::Value;

use super::{ModelClasses, Plan, PlanTable, Preset};
use crate::Error;

/// A preset and the changes to make to it, in order.
///
/// ```
/// use melm::plan::{ModelClass, ModelClasses, PlanBuilder, Preset};
/// let plan = PlanBuilder::new(Preset::Best)
///     .merge_toml("plan.toml", "version = 1\nmethod = \"melm\"\n")
///     .set("generate.rounds=5")
///     .build(ModelClasses::both(ModelClass::MINI))?;
/// assert_eq!(plan.generate.rounds.get(), 5);
/// # Ok::<(), melm::Error>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PlanBuilder {
    preset: Preset,
    changes: Vec<Change>,
}

#[derive(Clone, Debug, PartialEq)]
enum Change {
    Toml { name: String, text: String },
    Edit(String),
    Value { place: String, key: String, value: Value },
}

impl PlanBuilder {
    /// Creates a builder with a preset and no changes.
    pub fn new(preset: Preset) -> Self {
        Self { preset, changes: Vec::new() }
    }

    /// Sets the keys that a TOML file contains. `text` is the content of the file. Error messages contain `name`.
    #[must_use]
    pub fn merge_toml(self, name: &str, text: &str) -> Self {
        self.with(Change::Toml { name: name.to_owned(), text: text.to_owned() })
    }

    /// Sets one key from `key=value`, the argument of `--set`.
    #[must_use]
    pub fn set(self, edit: &str) -> Self {
        self.with(Change::Edit(edit.to_owned()))
    }

    /// Sets one key. Error messages name `place` as the origin of the value, such as an option.
    #[must_use]
    pub fn set_value(self, place: &str, key: &str, value: impl Into<Value>) -> Self {
        self.with(Change::Value {
            place: place.to_owned(),
            key: key.to_owned(),
            value: value.into(),
        })
    }

    fn with(mut self, change: Change) -> Self {
        self.changes.push(change);
        self
    }

    /// Builds the plan. The values of a preset depend on the classes of the models. Fails at the first change with an
    /// unknown key or an invalid value.
    pub fn build(&self, classes: ModelClasses) -> Result<Plan, Error> {
        let mut table = PlanTable::new(self.preset, classes);
        self.apply(&mut table)?;
        table.plan()
    }

    /// Applies the changes to a given table. The preset of the builder is not used.
    pub fn apply(&self, table: &mut PlanTable) -> Result<(), Error> {
        for change in &self.changes {
            match change {
                Change::Toml { name, text } => table.merge_toml(name, text)?,
                Change::Edit(edit) => table.set(edit)?,
                Change::Value { place, key, value } => {
                    table.set_value(place, key, value.clone())?;
                }
            }
        }
        Ok(())
    }
}
