//! From options to a plan: preset < file < `--set` < the other options.

use std::path::Path;

use melm::plan::{Plan, PlanTable, Size, Sizes};
use toml::Value;

use crate::args::Planning;
use crate::failure::Failure;
use crate::models;
use crate::terminal::Terminal;

/// A key that an option sets, and the option as the user wrote it.
pub(crate) struct Flag {
    pub(crate) option: String,
    pub(crate) key: &'static str,
    pub(crate) value: Value,
}

/// Which of a plan's models a command is going to use.
pub(crate) struct Needs {
    pub(crate) masked_lm: bool,
    pub(crate) tagger: bool,
}

/// The plan that the options give. Presets know values for small and for full models, so the models that are needed are
/// looked at first, and fetched if they are not here.
pub(crate) fn plan(
    planning: &Planning,
    flags: &[Flag],
    needs: impl Fn(&Plan) -> Needs,
    terminal: &Terminal,
) -> Result<Plan, Failure> {
    let file = match &planning.config {
        None => None,
        Some(path) => Some((path.as_path(), read(path)?)),
    };
    let layers = |sizes| -> Result<PlanTable, Failure> {
        let mut table = PlanTable::new(planning.preset, sizes);
        if let Some((path, text)) = &file {
            table.edit(&path.display().to_string(), text)?;
        }
        for edit in &planning.set {
            table.set(edit)?;
        }
        for flag in own_flags(planning).iter().chain(flags) {
            table.put_from(&flag.option, flag.key, flag.value.clone())?;
        }
        Ok(table)
    };
    let first = layers(Sizes::both(Size::Full))?.plan()?;
    let needs = needs(&first);
    let size = |model: &str, is_needed: bool| models::size(model, is_needed.then_some(terminal));
    let sizes = Sizes {
        masked_lm: size(&first.model.masked_lm, needs.masked_lm)?,
        tagger: size(&first.model.tagger, needs.tagger)?,
    };
    Ok(layers(sizes)?.plan()?)
}

fn read(path: &Path) -> Result<String, Failure> {
    std::fs::read_to_string(path)
        .map_err(|source| melm::Error::Read { path: path.to_path_buf(), source }.into())
}

fn own_flags(planning: &Planning) -> Vec<Flag> {
    let mut flags = Vec::new();
    let mut model = |option: &str, key, name: &Option<String>| {
        if let Some(name) = name {
            let value = Value::String(name.clone());
            flags.push(Flag { option: format!("{option} {name}"), key, value });
        }
    };
    let tagger = planning.tagger_model.as_ref().or(planning.model.as_ref()).cloned();
    model("--model", "model.masked_lm", &planning.model);
    model("--tagger-model", "model.tagger", &tagger);
    if let Some(seed) = planning.seed {
        let value =
            i64::try_from(seed).map_or_else(|_| Value::String(seed.to_string()), Value::Integer);
        flags.push(Flag { option: format!("--seed {seed}"), key: "seed", value });
    }
    flags
}
