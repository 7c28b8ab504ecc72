//! `melm train`: trains a tagger on labelled sentences.

use melm::training_job::TrainedKind;

use crate::args::Train;
use crate::command_line::CommandLine;
use crate::failure::Failure;
use crate::terminal::Terminal;
use crate::training;

pub(crate) fn run(
    command: &Train,
    command_line: &CommandLine,
    terminal: &Terminal,
) -> Result<(), Failure> {
    let (job, device_name) = training::prepare(TrainedKind::Tagger, &command.training, terminal)?;
    training::run(
        TrainedKind::Tagger,
        &job,
        &device_name,
        &command.training,
        command_line,
        terminal,
    )
}
