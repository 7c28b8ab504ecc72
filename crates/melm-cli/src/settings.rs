//! From options to a plan: preset < file < `--set` < the other options.

use std::path::Path;

use melm::plan::{ModelSize, ModelSizes, Plan, PlanTable, Preset};
use toml::Value;

use crate::args::{Layers, Planning};
use crate::failure::Failure;
use crate::models;
use crate::terminal::Terminal;

/// A key that an option sets, and the option as the user wrote it.
pub(crate) struct Flag {
    pub(crate) option: String,
    pub(crate) key: &'static str,
    pub(crate) value: Value,
}

impl Flag {
    /// `--rounds R`.
    pub(crate) fn rounds(rounds: std::num::NonZeroU32) -> Self {
        let value = Value::Integer(rounds.get().into());
        Self { option: format!("--rounds {rounds}"), key: "generate.rounds", value }
    }
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
    let file = planning.layers.config.as_deref().map(read).transpose()?;
    let layers = |sizes| -> Result<PlanTable, Failure> {
        let mut table = PlanTable::new(planning.preset, sizes);
        let mut models = models_of(planning.model.as_ref(), planning.tagger_model.as_ref());
        models.extend(planning.mulda_model.as_ref().map(|dir| Flag {
            option: format!("--mulda-model {dir}"),
            key: "model.seq2seq",
            value: Value::String(dir.clone()),
        }));
        lay_over(&mut table, (file.as_slice(), &planning.layers), &models)?;
        put(&mut table, flags)?;
        Ok(table)
    };
    let first = layers(ModelSizes::both(ModelSize::Full))?.plan()?;
    let needs = needs(&first);
    let size = |model: &str, is_needed: bool| models::size(model, is_needed.then_some(terminal));
    let sizes = ModelSizes {
        masked_lm: size(&first.model.masked_lm, needs.masked_lm)?,
        tagger: size(&first.model.tagger, needs.tagger)?,
    };
    Ok(layers(sizes)?.plan()?)
}

/// The plan of a model's folder, edited by the options.
pub(crate) fn plan_of_model(dir: &Path, layers: &Layers, flags: &[Flag]) -> Result<Plan, Failure> {
    let own = dir.join("plan.toml");
    let own = own.exists().then_some(own);
    let paths = own.as_deref().into_iter().chain(layers.config.as_deref());
    let files = paths.map(read).collect::<Result<Vec<_>, _>>()?;
    let size = models::size(&dir.display().to_string(), None)?;
    let mut table = PlanTable::new(Preset::default(), ModelSizes::both(size));
    lay_over(&mut table, (&files, layers), flags)?;
    Ok(table.plan()?)
}

/// The plan of a command that trains no model, so that no preset depends on one.
pub(crate) fn plan_of_layers(layers: &Layers, flags: &[Flag]) -> Result<Plan, Failure> {
    let file = layers.config.as_deref().map(read).transpose()?;
    let mut table = PlanTable::new(Preset::default(), ModelSizes::both(ModelSize::Small));
    lay_over(&mut table, (file.as_slice(), layers), flags)?;
    Ok(table.plan()?)
}

/// A file's name and text.
type Text = (String, String);

fn lay_over(
    table: &mut PlanTable,
    (files, layers): (&[Text], &Layers),
    flags: &[Flag],
) -> Result<(), Failure> {
    for (name, text) in files {
        table.merge_toml(name, text)?;
    }
    for edit in &layers.set {
        table.set(edit)?;
    }
    if let Some(seed) = layers.seed {
        let value =
            i64::try_from(seed).map_or_else(|_| Value::String(seed.to_string()), Value::Integer);
        table.set_value(&format!("--seed {seed}"), "seed", value)?;
    }
    put(table, flags)
}

pub(crate) fn put(table: &mut PlanTable, flags: &[Flag]) -> Result<(), Failure> {
    for flag in flags {
        table.set_value(&flag.option, flag.key, flag.value.clone())?;
    }
    Ok(())
}

pub(crate) fn read(path: &Path) -> Result<Text, Failure> {
    let text = std::fs::read_to_string(path)
        .map_err(|source| melm::Error::Read { path: path.to_path_buf(), source })?;
    Ok((path.display().to_string(), text))
}

/// The models that options name.
pub(crate) fn models_of(model: Option<&String>, tagger: Option<&String>) -> Vec<Flag> {
    let tagger = tagger.or(model);
    let models =
        [("--model", "model.masked_lm", model), ("--tagger-model", "model.tagger", tagger)];
    let named = models.into_iter().filter_map(|(option, key, name)| Some((option, key, name?)));
    let flag = |(option, key, name): (&str, &'static str, &String)| Flag {
        option: format!("{option} {name}"),
        key,
        value: Value::String(name.clone()),
    };
    named.map(flag).collect()
}
