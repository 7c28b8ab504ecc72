//! `melm config`: shows the plan that the options give.

use std::io::Write as _;

use melm::models::NeededModels;

use crate::args::Config;
use crate::failure::Failure;
use crate::machine;
use crate::output::Output;
use crate::settings;
use crate::terminal::Terminal;

pub(crate) fn run(command: &Config, terminal: &Terminal) -> Result<(), Failure> {
    let Config::Show(planning) = command;
    // Showing a plan downloads nothing.
    let needs = NeededModels { masked_lm: false, tagger: false };
    let plan = machine::models(terminal).plan(&settings::plan_builder(planning)?, |_| needs)?;
    let mut out = Output::create("-".as_ref(), false)?;
    out.write_all(plan.to_toml().as_bytes())
        .map_err(|error| Output::failed("standard output", error))?;
    out.finish()
}
