//! `melm config`: shows the settings that result from the options.

use melm::models::NeededModels;

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
    let plan = machine::models(terminal).plan(&settings::plan_builder(options)?, |_| needs)?;
    output::print(&plan.to_toml())
}
