//! The `melm` program.

use std::process::ExitCode;

fn main() -> ExitCode {
    ExitCode::from(melm_cli::run(std::env::args_os()))
}
