//! Builds plans from these sources, where later ones override earlier ones: preset, file, `--set`, other options.

use std::num::NonZeroU32;
use std::path::Path;

use melm::models::ModelStore;
use melm::plan::{ModelClass, ModelClasses, Plan, PlanBuilder, Preset};
use melm_nn::files::{MAX_CONFIG_BYTES, read_text_or_pipe};

use crate::args::{PlanOptions, PlanOverrides};
use crate::failure::Failure;

/// Returns a plan builder with the options that most commands share.
pub(crate) fn plan_builder(plan_options: &PlanOptions) -> Result<PlanBuilder, Failure> {
    let builder = add_overrides(PlanBuilder::new(plan_options.preset), &plan_options.overrides)?;
    let builder =
        set_models(builder, plan_options.model.as_deref(), plan_options.tagger_model.as_deref());
    Ok(set_mulda_model(builder, plan_options.mulda_model.as_deref()))
}

/// Sets the pretrained encoder-decoder, from `--mulda-model`.
pub(crate) fn set_mulda_model(builder: PlanBuilder, model: Option<&str>) -> PlanBuilder {
    match model {
        Some(name) => builder.set_value(&format!("--mulda-model {name}"), "model.seq2seq", name),
        None => builder,
    }
}

/// Returns the plan that is stored in the folder of a model, changed by the options.
pub(crate) fn plan_from_model(
    dir: &Path,
    overrides: &PlanOverrides,
    rounds: Option<NonZeroU32>,
) -> Result<Plan, Failure> {
    let mut builder = PlanBuilder::new(Preset::default());
    let own = dir.join("plan.toml");
    if own.exists() {
        builder = merge_file(builder, &own)?;
    }
    builder = add_overrides(builder, overrides)?;
    if let Some(rounds) = rounds {
        builder = set_rounds(builder, rounds);
    }
    let class = ModelStore::new().class(&dir.display().to_string(), false)?;
    Ok(builder.build(ModelClasses::both(class.unwrap_or(ModelClass::XLM_R_BASE)))?)
}

/// Returns the plan of a command that trains no model. The preset then does not depend on the class of a model.
pub(crate) fn plan_without_models(builder: &PlanBuilder) -> Result<Plan, Failure> {
    Ok(builder.build(ModelClasses::both(ModelClass::MINI))?)
}

/// Adds the settings of `--config`, `--set` and `--seed`.
pub(crate) fn add_overrides(
    mut builder: PlanBuilder,
    overrides: &PlanOverrides,
) -> Result<PlanBuilder, Failure> {
    if let Some(path) = &overrides.config {
        builder = merge_file(builder, path)?;
    }
    for edit in &overrides.set {
        builder = builder.set(edit);
    }
    if let Some(seed) = overrides.seed {
        let value = i64::try_from(seed).expect("clap limits seeds to i64");
        builder = builder.set_value(&format!("--seed {seed}"), "seed", value);
    }
    Ok(builder)
}

fn merge_file(builder: PlanBuilder, path: &Path) -> Result<PlanBuilder, Failure> {
    let text = read_text_or_pipe(path, MAX_CONFIG_BYTES)
        .map_err(|source| melm::Error::Read { path: path.to_path_buf(), source })?;
    Ok(builder.merge_toml(&path.display().to_string(), &text))
}

/// Sets the number of rounds, from `--rounds`.
pub(crate) fn set_rounds(builder: PlanBuilder, rounds: NonZeroU32) -> PlanBuilder {
    let value = i64::from(rounds.get());
    builder.set_value(&format!("--rounds {rounds}"), "generate.rounds", value)
}

/// Sets the models, from `--model` and `--tagger-model`. Without `--tagger-model`, the tagger uses `--model`.
pub(crate) fn set_models(
    mut builder: PlanBuilder,
    model: Option<&str>,
    tagger_model: Option<&str>,
) -> PlanBuilder {
    if let Some(name) = model {
        builder = builder.set_value(&format!("--model {name}"), "model.masked_lm", name);
    }
    if let Some(name) = tagger_model.or(model) {
        builder = builder.set_value(&format!("--tagger-model {name}"), "model.tagger", name);
    }
    builder
}
