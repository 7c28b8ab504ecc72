//! The `melm` command as a library, so that other front ends can call it.
//!
//! [`run`] parses arguments, calls the other crates and prints results. Only this crate reads the environment and the
//! clock.

mod args;
mod command_line;
mod commands;
mod diagnose;
mod failure;
pub mod host;
mod input;
mod interrupt;
mod labelled;
mod machine;
mod observer;
mod output;
mod progress;
mod settings;
mod sharding;
mod terminal;
mod training;
mod unlabelled;
mod vectors;

use std::ffi::OsString;

use clap::{CommandFactory, Parser};

use args::{Args, Command};
use command_line::CommandLine;
use terminal::{Terminal, Verbosity};

/// Returns the description of the command line, from which completions and man pages are made.
pub fn command() -> clap::Command {
    Args::command()
}

/// Notes whether standard output is closed. Call this before the runtime starts: it opens `/dev/null` in its place. A command
/// that writes to standard output then fails, and does not lose its output.
#[cfg(unix)]
pub fn find_closed_output() {
    output::find_closed();
}

/// Runs the command with these arguments. The first is the name of the program. Returns the exit code: 0 for success,
/// 1 for a failure, 2 for wrong usage, 130 if interrupted.
pub fn run(args: impl IntoIterator<Item = OsString>) -> u8 {
    let words: Vec<OsString> = args.into_iter().collect();
    let command_line = CommandLine::new(&words);
    let args = match Args::try_parse_from(words) {
        Ok(args) => args,
        // Clap returns help and version as errors, and prints them to standard output.
        Err(help) if !help.use_stderr() => {
            let terminal = Terminal::new(Verbosity::Normal);
            return exit_code(output::print_help(&help), &terminal);
        }
        Err(error) => {
            let _ = error.print();
            return u8::try_from(error.exit_code()).unwrap_or(2);
        }
    };
    interrupt::install();
    let terminal = Terminal::new(args.verbosity());
    let result = match args.command {
        Command::Check(command) => commands::check::run(&command, &terminal),
        Command::Convert(command) => commands::convert::run(&command, &terminal),
        Command::Sample(command) => commands::sample::run(&command, &terminal),
        Command::Score(command) => commands::score::run(&command, &terminal),
        Command::Augment(command) => commands::augment::run(&command, &command_line, &terminal),
        Command::Pick(command) => commands::pick::run(&command, &terminal),
        Command::Codemix(command) => commands::codemix::run(&command, &terminal),
        Command::Finetune(command) => commands::finetune::run(&command, &command_line, &terminal),
        Command::Generate(command) => commands::generate::run(&command, &command_line, &terminal),
        Command::Filter(command) => commands::filter::run(&command, &terminal),
        Command::Train(command) => commands::train::run(&command, &command_line, &terminal),
        Command::Tag(command) => commands::tag::run(&command, &command_line, &terminal),
        Command::Merge(command) => commands::merge::run(&command, &terminal),
        Command::Trial(command) => commands::trial::run(&command, &command_line, &terminal),
        Command::Reproduce(command) => commands::reproduce::run(&command, &command_line, &terminal),
        Command::Report(command) => commands::report::run(&command, &terminal),
        Command::Config(command) => commands::config::run(&command, &terminal),
        Command::Completions { shell } => commands::completions::run(shell),
    };
    exit_code(result, &terminal)
}

/// Shows a failure, and returns the exit code of the command.
fn exit_code(result: Result<(), failure::Failure>, terminal: &Terminal) -> u8 {
    match result {
        Ok(()) => 0,
        Err(failure) if failure.is_closed_pipe() => 0,
        Err(failure) => {
            diagnose::show(&failure, terminal);
            failure.exit_code()
        }
    }
}
