//! `melm config`: shows the settings that result from the options.

use melm::models::{ModelStore, NeededModels};
use melm::plan::reference::{self, PlanKey};
use melm::plan::{ModelClass, Plan, Preset};
use toml::{Table, Value};

use crate::args::{Config, ShowConfig};
use crate::failure::Failure;
use crate::machine;
use crate::output;
use crate::settings;
use crate::terminal::Terminal;

pub(crate) fn run(command: &Config, terminal: &Terminal) -> Result<(), Failure> {
    let Config::Show(ShowConfig { explain, plan_options: options }) = command;
    // No model is needed to show a plan, so none is downloaded.
    let needs = NeededModels { masked_lm: false, tagger: false };
    let models = machine::models(terminal);
    let plan = models.plan(&settings::plan_builder(options)?, |_| needs)?;
    if let Some(name) = explain {
        let keys = reference::find(&format!("`--explain {name}`"), name)?;
        let texts: Vec<String> = keys.iter().map(|key| describe_key(key, &plan)).collect();
        return output::print(&texts.join("\n"));
    }
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

/// Returns what `--explain` prints about a key: its value in `plan` and its documentation.
fn describe_key(key: &PlanKey, plan: &Plan) -> String {
    let table = Value::Table(Table::try_from(plan).expect("a plan is a table"));
    let value = key.key.split('.').try_fold(&table, |value, part| value.get(part));
    let value = value.map_or("{}".to_owned(), Value::to_string);
    let mut text = format!("{} = {value}\n  {}\n", key.key, key.meaning);
    text += &format!("  type: {}\n", key.kind.replace('`', ""));
    for allowed in &key.values {
        text += &format!("    {}: {}\n", allowed.value, allowed.meaning);
    }
    match key.defaults.as_slice() {
        [only] => text += &format!("  default: {}\n", only.value),
        several => {
            text += "  default:\n";
            for default in several {
                let place = default.applies_to.replace('`', "");
                text += &format!("    {}: {place}\n", default.value);
            }
        }
    }
    text += &format!("  source: {}\n", key.source);
    text
}
