//! Trains a model in its own folder, for `melm train` and `melm finetune`.

use std::path::Path;
use std::time::Instant;

use melm::Corpus;
use melm::stage::Event;
use melm::training::{BestEvaluation, TrainingOutcome};
use melm::training_job::{TrainedKind, TrainingJob};

use crate::args::TrainingOptions;
use crate::command_line::CommandLine;
use crate::failure::Failure;
use crate::interrupt::DeferInterrupt;
use crate::labelled;
use crate::machine;
use crate::observer::ProgressObserver;
use crate::output;
use crate::progress::duration;
use crate::settings;
use crate::terminal::{Terminal, count};

/// Reads the data, builds the plan and opens the model. Also returns a line that names the device.
pub(crate) fn prepare(
    kind: TrainedKind,
    options: &TrainingOptions,
    terminal: &Terminal,
) -> Result<(TrainingJob, String), Failure> {
    let inputs = options.files.iter().chain(&options.dev);
    labelled::refuse_second_stdin(inputs.map(|input| input.path.as_path()))?;
    let models = machine::models(terminal);
    let mut builder = settings::plan_builder(&options.plan_options)?;
    let epochs = options.epochs.map(|n| (format!("--epochs {n}"), format!("{n} epochs")));
    let updates = options.updates.map(|n| (format!("--updates {n}"), format!("{n} updates")));
    if let Some((place, budget)) = epochs.or(updates) {
        builder = builder.set_value(&place, kind.budget_key(), budget);
    }
    let plan = models.plan(&builder, |_| kind.needed_models())?;
    let train = labelled::read(&options.files, &options.input, terminal)?;
    let dev = labelled::read_dev(&train, &options.dev, &options.input, terminal)?;
    let (device, device_name) = machine::device(&options.plan_options.device_options)?;
    Ok((TrainingJob::new(kind, train, dev, plan, &models, device)?, device_name))
}

/// Starts or resumes the training. Does nothing if the training is already finished.
pub(crate) fn run(
    kind: TrainedKind,
    job: &TrainingJob,
    device_name: &str,
    options: &TrainingOptions,
    command_line: &CommandLine,
    terminal: &Terminal,
) -> Result<(), Failure> {
    let started = Instant::now();
    let seconds = || started.elapsed().as_secs_f64();
    if options.force {
        let models = &job.plan().model;
        let model = match kind {
            TrainedKind::Tagger => &models.tagger,
            TrainedKind::MaskedLm => &models.masked_lm,
        };
        output::refuse_replaced_input(Path::new(model), &options.out, |_| false)?;
    }
    let folder =
        job.open_folder(&options.out, options.force)?.with_arguments(command_line.arguments());
    if let Some(finished) = folder.finished()? {
        terminal.info(&format!("`{}` is already finished", options.out.display()));
        if let Some(warning) = finished.warning(&options.out) {
            // Printed with `--quiet` too: the folder does not have the results of this command.
            terminal.print(&terminal.warning(&warning));
        }
        return output::print_json(options.json, Some(&finished.record));
    }
    terminal.info(&describe(kind, job, device_name));
    terminal.warn_all(job.warnings());
    let deferred = DeferInterrupt::new();
    let mut observer = ProgressObserver::new(options.plan_options.save_every, terminal);
    let mut on_event = |stage: &'static str, event: Event<'_>| observer.on_event(stage, event);
    let finished = folder.run(&mut on_event, &seconds)?;
    drop((observer, deferred));
    terminal.info_all(finished.details.notes());
    output::print_card(finished.card, terminal);
    let out = options.out.display();
    terminal.info(&format!("wrote `{out}`: {}", result(kind, &finished.outcome, seconds())));
    output::print_json(options.json, Some(&finished.record.into()))
}

fn describe(kind: TrainedKind, job: &TrainingJob, device_name: &str) -> String {
    let verb = match kind {
        TrainedKind::Tagger => "training",
        TrainedKind::MaskedLm => "fine-tuning",
    };
    let dev = |dev: &Corpus| format!("best epoch on {}", labelled::describe(dev));
    let dev = job.dev().map_or("no dev set, using the last epoch".to_owned(), dev);
    format!(
        "{verb} {} on {} for {}, {dev}; {device_name}",
        kind.model(job.plan()),
        labelled::describe(job.train()),
        kind.settings(job.plan()).budget,
    )
}

fn result(kind: TrainedKind, outcome: &TrainingOutcome, seconds: f64) -> String {
    let score = |best: BestEvaluation| match kind {
        TrainedKind::Tagger => format!("dev F1 {:.2} in epoch {}", best.value * 100.0, best.epoch),
        TrainedKind::MaskedLm => format!("dev loss {:.3} in epoch {}", best.value, best.epoch),
    };
    let best = outcome.best.map_or("last epoch".to_owned(), score);
    let n_updates = usize::try_from(outcome.n_steps).unwrap_or(usize::MAX);
    format!("{best}, {} in {}", count(n_updates, "update"), duration(seconds))
}
