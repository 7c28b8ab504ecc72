//! `melm augment`: runs all stages of the method.

pub(crate) mod report;
mod silver;
mod text_report;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use melm::augment::{AugmentJob, Estimate, Voting};
use melm::methods::Method;
use melm::models::Pretrained;
use melm::names::NameList;
use melm::shard::Shard;
use melm::stage::Event;
use melm::{Augment, Corpus, ModelStore, Plan};
use melm_nn::device::Device;
use melm_text::{LeftOut, TextOptions, UnlabelledText, count_of};

use crate::args;
use crate::command_line::CommandLine;
use crate::failure::Failure;
use crate::interrupt::DeferInterrupt;
use crate::labelled::{self, refuse_second_stdin};
use crate::machine;
use crate::observer::ProgressObserver;
use crate::output;
use crate::progress::duration;
use crate::settings;
use crate::sharding::{shard_folders, shard_path};
use crate::terminal::{Terminal, count};
use crate::unlabelled;
use crate::vectors;

pub(crate) fn run(
    command: &args::Augment,
    command_line: &CommandLine,
    terminal: &Terminal,
) -> Result<(), Failure> {
    let started = Instant::now();
    let seconds = || started.elapsed().as_secs_f64();
    let (job, device_name) = prepare(command, terminal)?;
    let out = shard_path(&command.out, command.shard);
    if command.force {
        refuse_replaced_inputs(command, &out)?;
    }
    let folder = job
        .open_folder(&out, command.force, command.keep_model)?
        .with_arguments(command_line.arguments())
        .with_votes_from(shard_folders(&command.out, &out));
    if let Some(finished) = folder.finished()? {
        terminal.info(&format!("`{}` is already finished", out.display()));
        if let Some(warning) = finished.warning(&out) {
            // Printed with `--quiet` too: the folder does not have the results of this command.
            terminal.print(&terminal.warning(&warning));
        }
        return output::print_json(command.json, Some(&finished.record));
    }
    describe_run(&job, &device_name, command.keep_model, terminal);
    if command.dry_run {
        print_estimate(&job.estimate(&seconds), terminal);
        return Ok(());
    }
    let deferred = DeferInterrupt::new();
    let mut observer = ProgressObserver::new(command.plan_options.save_every, terminal);
    let mut on_event = |stage: &'static str, event: Event<'_>| observer.on_event(stage, event);
    if let Some(shard) = command.shard {
        let voting = folder.vote(shard, &mut on_event)?;
        drop((observer, deferred));
        report_voting(&voting, shard, terminal);
        return Ok(());
    }
    let outcome = folder.run(&mut on_event, &seconds)?;
    drop((observer, deferred));
    report::print(&outcome, seconds(), terminal);
    output::print_json(command.json, Some(&outcome.record.into()))
}

/// Says what the run does.
fn describe_run(job: &AugmentJob, device_name: &str, keep_model: bool, terminal: &Terminal) {
    terminal.info(&describe(job, device_name));
    if let Some(text) = job.text() {
        terminal.info(&describe_text(text, job.left_out(), job.plan()));
    }
    terminal.info_all(job.notes());
    terminal.warn_all(job.warnings());
    if keep_model && !job.plan().method.has_masked_lm() {
        terminal.info(&format!(
            "ignoring `--keep-model`: the method {} fine-tunes no model",
            job.plan().method.name()
        ));
    }
}

/// Says whether all taggers have voted, and what to do next.
fn report_voting(voting: &Voting, shard: Shard, terminal: &Terminal) {
    terminal.info(&match voting {
        Voting::Complete => {
            format!("shard {shard}: all taggers have voted; run the command without `--shard`")
        }
        Voting::Waiting { pass, taggers } => {
            let numbers: Vec<_> = taggers.iter().map(ToString::to_string).collect();
            format!(
                "shard {shard}: all its taggers have voted in pass {pass}; missing: tagger {} of other \
                 shards; when they have voted, run the shards again for the next pass, or the \
                 command without `--shard`",
                numbers.join(", ")
            )
        }
    });
}

/// Reads the data, builds the plan and opens the models. Also returns a line that names the device.
fn prepare(command: &args::Augment, terminal: &Terminal) -> Result<(AugmentJob, String), Failure> {
    let models = machine::models(terminal);
    let plan = build_plan(command, &models)?;
    let train = labelled::read(&command.files, &command.input, terminal)?;
    let dev = labelled::read_dev(&train, &command.dev, &command.input, terminal)?;
    let text = unlabelled::read(&command.text, &train, &command.input, terminal)?;
    let silver = silver::read(command, terminal)?;
    let held_out = unlabelled::read_held_out(&command.text, &train, &command.input, terminal)?;
    let names = read_names(command, &train)?;
    let vectors = vectors::read(&command.vectors, &plan, &train, terminal)?;
    let (device, device_name) = machine::device(&command.plan_options.device_options)?;
    let mut augment =
        Augment::new(train).plan(plan).models(models).device(Arc::<Device>::new(device));
    if let Some(dev) = dev {
        augment = augment.dev(dev);
    }
    if let Some(text) = text {
        augment = augment.unlabelled(text);
    }
    augment = silver.into_iter().fold(augment, Augment::silver);
    augment = held_out.into_iter().fold(augment, Augment::held_out);
    augment = names.into_iter().fold(augment, Augment::names);
    if let Some(vectors) = vectors {
        augment = augment.vectors(vectors);
    }
    Ok((augment.prepare()?, device_name))
}

/// Builds the plan. Fails if options contradict each other.
fn build_plan(command: &args::Augment, models: &ModelStore) -> Result<Plan, Failure> {
    let mut builder = settings::plan_builder(&command.plan_options)?;
    if let Some(rounds) = command.rounds {
        builder = settings::set_rounds(builder, rounds);
    }
    builder = vectors::set_kind(builder, &command.vectors)?;
    if let Some(n_folds) = command.check_gold {
        let option = format!("--check-gold={n_folds}");
        builder = builder.set_value(&option, "gold_check.folds", i64::from(n_folds));
    }
    if let Some(method) = command.method {
        let name = method.name();
        builder = builder.set_value(&format!("--method {name}"), "method", name);
    }
    let has_text = !command.text.unlabelled.is_empty() || !command.silver.is_empty();
    check_standard_input(command)?;
    unlabelled::check_held_out(&command.text, has_text, "`--unlabelled FILE` or `--silver FILE`")?;
    Ok(models.plan(&builder, |plan| AugmentJob::needed_models(plan, has_text))?)
}

/// Reads the lists of names. They are split into tokens like those of `train`.
fn read_names(command: &args::Augment, train: &Corpus) -> Result<Vec<NameList>, Failure> {
    let encoding = command.input.encoding;
    let limits = machine::limits()?;
    let open = |list: &args::NamesInput| {
        let options = TextOptions { encoding, ..TextOptions::default() }.within(limits);
        NameList::open(&list.entity_type, &list.path, train, options)
    };
    Ok(command.name_list.iter().map(open).collect::<Result<_, _>>()?)
}

/// Fails if the results of the run would replace one of its inputs.
fn refuse_replaced_inputs(command: &args::Augment, out: &Path) -> Result<(), Failure> {
    let is_result = |name: &str| name.starts_with("train.augmented.") || name == "drafts.jsonl";
    let inputs = command.files.iter().chain(&command.dev).chain(&command.text.unlabelled);
    let paths = inputs.map(|input| input.path.as_path());
    let mut paths = paths.chain(command.silver.iter().map(|input| input.path.as_path()));
    paths.try_for_each(|path| output::refuse_replaced_input(path, out, is_result))
}

/// Fails if standard input is named twice.
fn check_standard_input(command: &args::Augment) -> Result<(), Failure> {
    let inputs = command.files.iter().chain(&command.dev).chain(&command.text.unlabelled);
    let paths = inputs.map(|input| input.path.as_path());
    let paths = paths.chain(command.silver.iter().map(|input| input.path.as_path()));
    refuse_second_stdin(paths.chain(command.text.held_out.iter().map(PathBuf::as_path)))
}

fn describe(job: &AugmentJob, device_name: &str) -> String {
    let dev = |dev: &Corpus| format!("best epochs on {}", labelled::describe(dev));
    let dev = job.dev().map_or("no dev set, using the last epochs".to_owned(), dev);
    let (train, method) = (labelled::describe(job.train()), job.plan().method.name());
    if job.plan().method == Method::Gold {
        // There are no drafts, so there are no rounds and no judge.
        return format!("augmenting {train} by {method}: {dev}; {device_name}");
    }
    let name = |model: Option<&Pretrained>| model.map(|model| model.name().to_owned());
    let generator = job.seq2seq_name().or(name(job.masked_lm()));
    let judge = name(job.tagger().filter(|_| job.plan().has_judge()));
    let models = match (generator, judge) {
        (Some(lm), Some(tagger)) if lm == tagger => format!(" with {lm}"),
        (Some(lm), Some(tagger)) => format!(" with {lm}, judged by {tagger}"),
        (Some(lm), None) => format!(" with {lm}, not judged"),
        (None, Some(tagger)) => format!(", judged by {tagger}"),
        (None, None) => ", not judged".to_owned(),
    };
    let rounds = count(job.plan().generate.rounds.get() as usize, "round");
    format!("augmenting {train} by {method}{models}: {rounds}, {dev}; {device_name}")
}

/// Describes how the unlabelled text is labelled, and how many sentences were left out of it.
fn describe_text(text: &UnlabelledText, left_out: LeftOut, plan: &Plan) -> String {
    let settings = &plan.self_training;
    let n = count(text.sentences().len(), "sentence");
    let mut names: Vec<String> = Vec::new();
    for name in text.sentences().iter().map(|sentence| format!("`{}`", sentence.file())) {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    let names = names.join(", ");
    let n_taggers = count(settings.panel.get(), "tagger");
    let n_passes = match settings.passes.get() {
        1 => "1 pass".to_owned(),
        n => format!("{n} passes"),
    };
    let budget = settings.budget;
    let left_out = match left_out.total() {
        0 => String::new(),
        n => format!("; {} left out", count_of(n, text.sentences().len() + n, "sentence")),
    };
    format!(
        "labelling {n} of {names} with a panel of {n_taggers}: {n_passes}, {budget} for each tagger{left_out}"
    )
}

pub(crate) fn print_estimate(estimate: &Estimate, terminal: &Terminal) {
    for stage in &estimate.stages {
        terminal.info(&format!("  {:<40}{:>8}", stage.title, duration(stage.seconds)));
    }
    if estimate.stages.is_empty() {
        terminal.info("no model is trained or used; stopped because of `--dry-run`");
        return;
    }
    terminal.info(&format!(
        "about {} and {:.1} GiB of memory; stopped because of `--dry-run`",
        duration(estimate.seconds()),
        estimate.bytes() / f64::from(1 << 30),
    ));
}
