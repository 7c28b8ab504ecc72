//! `melm augment`: runs all stages of the method.

pub(crate) mod report;

use std::sync::Arc;
use std::time::Instant;

use melm::augment::{AugmentJob, Estimate};
use melm::models::Pretrained;
use melm::stage::Event;
use melm::{Augment, Corpus};
use melm_nn::device::Device;

use crate::args;
use crate::failure::Failure;
use crate::interrupt::DeferInterrupt;
use crate::labelled;
use crate::machine;
use crate::observer::ProgressObserver;
use crate::output;
use crate::progress::duration;
use crate::settings;
use crate::terminal::{Terminal, count};
use crate::vectors;

pub(crate) fn run(command: &args::Augment, terminal: &Terminal) -> Result<(), Failure> {
    let started = Instant::now();
    let seconds = || started.elapsed().as_secs_f64();
    let (job, device_name) = prepare(command, terminal)?;
    let folder = job.open_folder(&command.out, command.force, command.keep_model)?;
    if let Some(finished) = folder.finished()? {
        let changed = finished.changed.map(|name| format!(", but `{name}` has changed since"));
        let changed = changed.unwrap_or_default();
        terminal.info(&format!("`{}` is already finished{changed}", command.out.display()));
        return output::print_json(command.json, Some(&finished.record));
    }
    terminal.info(&describe(&job, &device_name));
    if command.keep_model && !job.plan().method.has_masked_lm() {
        terminal.info(&format!(
            "ignoring `--keep-model`: the method {} fine-tunes no model",
            job.plan().method.name()
        ));
    }
    if command.dry_run {
        print_estimate(&job.estimate(&seconds), terminal);
        return Ok(());
    }
    let deferred = DeferInterrupt::new();
    let mut observer = ProgressObserver::new(command.plan_options.save_every, terminal);
    let mut on_event = |stage: &'static str, event: Event<'_>| observer.on_event(stage, event);
    let outcome = folder.run(&mut on_event, &seconds)?;
    drop((observer, deferred));
    report::print(&outcome, seconds(), terminal);
    output::print_json(command.json, Some(&outcome.record.into()))
}

/// Reads the data, builds the plan and opens the models. Also returns a line that names the device.
fn prepare(command: &args::Augment, terminal: &Terminal) -> Result<(AugmentJob, String), Failure> {
    let models = machine::models(terminal);
    let mut builder = settings::plan_builder(&command.plan_options)?;
    if let Some(rounds) = command.rounds {
        builder = settings::set_rounds(builder, rounds);
    }
    builder = vectors::set_kind(builder, &command.vectors)?;
    if let Some(method) = command.method {
        let name = method.name();
        builder = builder.set_value(&format!("--method {name}"), "method", name);
    }
    let plan = models.plan(&builder, AugmentJob::needed_models)?;
    let train = labelled::read(&command.files, &command.input, terminal)?;
    let dev = labelled::read_dev(&train, &command.dev, &command.input, terminal)?;
    let vectors = vectors::read(&command.vectors, &plan, &train, terminal)?;
    let (device, device_name) = machine::device(&command.plan_options.device_options)?;
    let mut augment =
        Augment::new(train).plan(plan).models(models).device(Arc::<Device>::new(device));
    if let Some(dev) = dev {
        augment = augment.dev(dev);
    }
    if let Some(vectors) = vectors {
        augment = augment.vectors(vectors);
    }
    Ok((augment.prepare()?, device_name))
}

fn describe(job: &AugmentJob, device_name: &str) -> String {
    let name = |model: Option<&Pretrained>| model.map(|model| model.name().to_owned());
    let generator = job.seq2seq_name().or(name(job.masked_lm()));
    let models = match (generator, name(job.tagger())) {
        (Some(lm), Some(tagger)) if lm == tagger => format!(" with {lm}"),
        (Some(lm), Some(tagger)) => format!(" with {lm}, judged by {tagger}"),
        (Some(lm), None) => format!(" with {lm}, not judged"),
        (None, Some(tagger)) => format!(", judged by {tagger}"),
        (None, None) => ", not judged".to_owned(),
    };
    let dev = |dev: &Corpus| format!("best epochs on {}", labelled::describe(dev));
    let dev = job.dev().map_or("no dev set, using the last epochs".to_owned(), dev);
    let rounds = count(job.plan().generate.rounds.get() as usize, "round");
    let (train, method) = (labelled::describe(job.train()), job.plan().method.name());
    format!("augmenting {train} by {method}{models}: {rounds}, {dev}; {device_name}")
}

fn print_estimate(estimate: &Estimate, terminal: &Terminal) {
    for stage in &estimate.stages {
        terminal.info(&format!("  {:<40}{:>8}", stage.title, duration(stage.seconds)));
    }
    terminal.info(&format!(
        "about {} and {:.1} GiB of memory; stopped because of `--dry-run`",
        duration(estimate.seconds()),
        estimate.bytes() / f64::from(1 << 30),
    ));
}
