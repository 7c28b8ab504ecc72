//! `melm completions`: prints a completion script for a shell.

use clap_complete::Shell;

use crate::failure::Failure;
use crate::output::Output;

pub(crate) fn run(shell: Shell) -> Result<(), Failure> {
    let mut out = Output::create("-".as_ref(), false)?;
    clap_complete::generate(shell, &mut crate::command(), "melm", &mut out);
    out.finish()
}
