//! `melm finetune`: fine-tunes a masked language model on labelled sentences.

use melm::training_job::TrainedKind;

use crate::args::Finetune;
use crate::command_line::CommandLine;
use crate::failure::Failure;
use crate::terminal::Terminal;
use crate::training;

pub(crate) fn run(
    command: &Finetune,
    command_line: &CommandLine,
    terminal: &Terminal,
) -> Result<(), Failure> {
    let (job, device_name) = training::prepare(TrainedKind::MaskedLm, &command.training, terminal)?;
    let method = job.plan().method;
    if !method.finetunes() {
        return Err(Failure::Usage {
            message: format!("the method `{}` does not fine-tune a model", method.name()),
            hint: "set the plan's `method` to `melm` or `melm-plain`, or use `melm augment`",
        });
    }
    if method.mixes() {
        return Err(Failure::Usage {
            message: format!(
                "the method `{}` needs code-mixed sentences, which only `melm augment` makes",
                method.name()
            ),
            hint: "use `melm augment --keep-model`, which also writes the fine-tuned model",
        });
    }
    training::run(
        TrainedKind::MaskedLm,
        &job,
        &device_name,
        &command.training,
        command_line,
        terminal,
    )
}
