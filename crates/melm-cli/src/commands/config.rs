//! `melm config`: shows the settings that result from the options.

use melm::models::{ModelStore, NeededModels};
use melm::plan::{ModelClass, Plan, Preset};

use crate::args::Config;
use crate::failure::Failure;
use crate::machine;
use crate::output;
use crate::settings;
use crate::terminal::Terminal;

pub(crate) fn run(command: &Config, terminal: &Terminal) -> Result<(), Failure> {
    let Config::Show(options) = command;
    // No model is needed to show a plan, so none is downloaded.
    let needs = NeededModels { masked_lm: false, tagger: false };
    let models = machine::models(terminal);
    let plan = models.plan(&settings::plan_builder(options)?, |_| needs)?;
    let classes = describe_classes(options.preset, &plan, &models)?;
    output::print(&format!("{classes}{}", plan.to_toml()))
}

/// Returns comments with the preset and the classes of the models for which its values were chosen.
fn describe_classes(preset: Preset, plan: &Plan, models: &ModelStore) -> Result<String, Failure> {
    let name =
        Preset::NAMES.iter().find(|(_, known)| *known == preset).map_or("", |(name, _)| name);
    let mut text = format!("# preset `{name}`\n");
    for (key, model) in [("masked_lm", &plan.model.masked_lm), ("tagger", &plan.model.tagger)] {
        let class = match models.class(model, false)? {
            Some(class) => class.to_string(),
            None => format!("not on this machine, assumed to be {}", ModelClass::XLM_R_BASE),
        };
        text += &format!("# {key} {model:?}: {class}\n");
    }
    Ok(text)
}
