//! The `melm` command: arguments in, library calls, words and exit codes out.

mod args;
mod commands;
mod data;
mod diagnose;
mod failure;
mod input;
mod interrupt;
mod labelled;
mod listener;
mod models;
mod output;
mod progress;
mod settings;
mod terminal;
mod training;
mod vectors;

use std::process::ExitCode;

use clap::Parser;

use args::{Args, Command};
use terminal::Terminal;

fn main() -> ExitCode {
    let args = Args::parse();
    interrupt::install();
    let terminal = Terminal::new(args.loudness());
    let done = match args.command {
        Command::Check(command) => commands::check::run(&command, &terminal),
        Command::Convert(command) => commands::convert::run(&command, &terminal),
        Command::Sample(command) => commands::sample::run(&command, &terminal),
        Command::Score(command) => commands::score::run(&command, &terminal),
        Command::Augment(command) => commands::augment::run(&command, &terminal),
        Command::Codemix(command) => commands::codemix::run(&command, &terminal),
        Command::Finetune(command) => commands::finetune::run(&command, &terminal),
        Command::Generate(command) => commands::generate::run(&command, &terminal),
        Command::Filter(command) => commands::filter::run(&command, &terminal),
        Command::Train(command) => commands::train::run(&command, &terminal),
        Command::Tag(command) => commands::tag::run(&command, &terminal),
        Command::Trial(command) => commands::trial::run(&command, &terminal),
        Command::Reproduce(command) => commands::reproduce::run(&command, &terminal),
        Command::Config(command) => commands::config::run(&command, &terminal),
        Command::Completions { shell } => commands::completions::run(shell),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) if failure.is_closed_pipe() => ExitCode::SUCCESS,
        Err(failure) => {
            diagnose::show(&failure, &terminal);
            ExitCode::from(failure.exit_code())
        }
    }
}
