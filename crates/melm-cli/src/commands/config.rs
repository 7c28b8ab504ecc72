//! `melm config`: what the settings come to.

use std::io::Write as _;

use crate::args::Config;
use crate::failure::Failure;
use crate::output::Output;
use crate::settings::{self, Needs};
use crate::terminal::Terminal;

pub(crate) fn run(command: &Config, terminal: &Terminal) -> Result<(), Failure> {
    let Config::Show(planning) = command;
    let plan =
        settings::plan(planning, &[], |_| Needs { masked_lm: false, tagger: false }, terminal)?;
    let mut out = Output::create("-".as_ref(), false)?;
    out.write_all(plan.to_toml().as_bytes())
        .map_err(|error| Output::failed("standard output", error))?;
    out.finish()
}
