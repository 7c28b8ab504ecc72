//! `melm pick`: picks the sentences of a text that a person should label next.

use std::time::Instant;

use melm::pick::PickJob;
use melm::stage::Event;
use melm::{Pick, Picked};
use melm_text::{Format, Sentence, find_losses};

use crate::args;
use crate::commands::augment::print_estimate;
use crate::failure::Failure;
use crate::interrupt::DeferInterrupt;
use crate::labelled::{self, refuse_second_stdin};
use crate::machine;
use crate::observer::ProgressObserver;
use crate::output::{self, check_files, check_output, choose_format, is_stream_output};
use crate::progress::duration;
use crate::settings;
use crate::terminal::{Terminal, count};
use crate::unlabelled;

/// The number of picked sentences that are shown.
const N_EXAMPLES: usize = 5;
/// The number of tokens of a sentence that are shown.
const SHOWN_TOKENS: usize = 16;

pub(crate) fn run(command: &args::Pick, terminal: &Terminal) -> Result<(), Failure> {
    let started = Instant::now();
    let seconds = || started.elapsed().as_secs_f64();
    let (out, force) = (&command.output.out, command.output.force);
    let is_stream = is_stream_output(out);
    check_output(out, force)?;
    if !is_stream {
        check_output(&Picked::lines_path(out), force)?;
    }
    check_standard_input(command)?;
    let (job, device_name) = prepare(command, terminal)?;
    let train_format = job.train().files().first().map_or(Format::CONLL, |file| file.format());
    let format = choose_format(command.to, out, train_format)?;
    check_files(out, force, format)?;
    let n_sentences = job.text().sentences().len();
    let n = n_sentences.min(command.size as usize);
    terminal.info(&describe(&job, n, &device_name));
    if n < command.size as usize {
        let wanted = command.size;
        terminal.warn(&format!(
            "the text has fewer than {wanted} sentences to pick from; picking at most {n}"
        ));
    }
    if command.dry_run {
        print_estimate(&job.estimate(&seconds), terminal);
        return Ok(());
    }
    let deferred = DeferInterrupt::new();
    let mut observer = ProgressObserver::new(command.plan_options.save_every, terminal);
    let mut on_event = |stage: &'static str, event: Event<'_>| observer.on_event(stage, event);
    if is_stream {
        let picked = job.run(&mut on_event).map_err(|error| {
            Failure::from(error).without_saved_state("; pass `-o FILE` to resume")
        })?;
        drop((observer, deferred));
        return write(&picked, format, command, seconds(), terminal);
    }
    let folder = job.open_folder(&output::with_suffix(out, ".unfinished"), force)?;
    let picked = folder.run(&mut on_event)?;
    drop((observer, deferred));
    write(&picked, format, command, seconds(), terminal)?;
    Ok(folder.remove()?)
}

/// Reads the data, builds the plan and opens the model. Also returns a line that names the device.
fn prepare(command: &args::Pick, terminal: &Terminal) -> Result<(PickJob, String), Failure> {
    let builder = settings::plan_builder(&command.plan_options)?;
    let train = labelled::read(&command.train, &command.input, terminal)?;
    let dev = labelled::read_dev(&train, &command.dev, &command.input, terminal)?;
    let text = command.text();
    let held_out = unlabelled::read_held_out(&text, &train, &command.input, terminal)?;
    let text = unlabelled::read(&text, &train, &command.input, terminal)?.unwrap_or_default();
    let (device, device_name) = machine::device(&command.plan_options.device_options)?;
    let mut pick = Pick::new(train, text)
        .n(command.size as usize)
        .settings(builder)
        .models(machine::models(terminal))
        .device(device);
    if let Some(dev) = dev {
        pick = pick.dev(dev);
    }
    for text in held_out {
        pick = pick.held_out(text);
    }
    Ok((pick.prepare()?, device_name))
}

/// Fails if standard input is named twice.
fn check_standard_input(command: &args::Pick) -> Result<(), Failure> {
    let inputs = command.files.iter().chain(&command.train).chain(&command.dev);
    let paths = inputs.map(|input| input.path.as_path());
    refuse_second_stdin(paths.chain(command.held_out.iter().map(AsRef::as_ref)))
}

/// Says what is done.
fn describe(job: &PickJob, n: usize, device_name: &str) -> String {
    let settings = &job.plan().self_training;
    let of = count(job.text().sentences().len(), "sentence");
    let names: Vec<_> = job.text().files().iter().map(|file| format!("`{}`", file.name)).collect();
    let dev = job.dev().map_or("no dev set, using the last epochs".to_owned(), |dev| {
        format!("best epochs on {}", labelled::describe(dev))
    });
    let left_out = match job.left_out().total() {
        0 => String::new(),
        n => format!(" ({} left out, known or repeated)", count(n, "other")),
    };
    format!(
        "picking {n} of {of} of {}{left_out} with a panel of {} on {}, {} each, {dev}; {device_name}",
        names.join(", "),
        count(settings.panel.get(), "tagger"),
        labelled::describe(job.train()),
        settings.budget,
    )
}

/// Writes the sentences and the file of their votes, and prints a report.
fn write(
    picked: &Picked,
    format: Format,
    command: &args::Pick,
    seconds: f64,
    terminal: &Terminal,
) -> Result<(), Failure> {
    let (out, force) = (&command.output.out, command.output.force);
    output::report_losses(&find_losses(&picked.documents(), format), format, terminal);
    output::write_files(out, force, &picked.to_files(format)?)?;
    print_report(picked, terminal);
    let sentences = picked.sentences();
    let n_mentions: usize = sentences.iter().map(|one| one.sentence.mentions().count()).sum();
    let parts = format!(
        "{} with {}",
        count(sentences.len(), "sentence"),
        count(n_mentions, "suggested mention")
    );
    if is_stream_output(out) {
        terminal.info(&format!("wrote {parts} in {}", duration(seconds)));
        return Ok(());
    }
    let lines = Picked::lines_path(out);
    output::write(&lines, force, &picked.to_lines())?;
    terminal.info(&format!(
        "wrote `{}`: {parts}, and `{}`: scores and votes, in {}",
        out.display(),
        lines.display(),
        duration(seconds)
    ));
    Ok(())
}

/// Prints what became of the sentences of the text, and the first picked ones.
fn print_report(picked: &Picked, terminal: &Terminal) {
    let summary = picked.summary();
    let rows = [
        ("sentences of the text", summary.sentences),
        ("  too long for the model", summary.too_long),
        ("  the panel disagrees", summary.disputed),
        ("  near-duplicates of picks", summary.near_duplicates),
        ("picked", summary.picked),
    ];
    for (title, n) in rows {
        if n > 0 || !title.starts_with(' ') {
            terminal.info(&format!("{title:<27}{n:>7}"));
        }
    }
    for (at, one) in picked.sentences().iter().take(N_EXAMPLES).enumerate() {
        let text = show(&one.sentence, picked);
        terminal.info(&format!("{:>5}  {:.2}  {text}", at + 1, one.score));
    }
}

/// Returns the first tokens of a sentence with its suggested mentions in brackets.
fn show(sentence: &Sentence, picked: &Picked) -> String {
    let mentions: Vec<_> = sentence.mentions().collect();
    let mut words: Vec<String> = Vec::new();
    for (at, token) in sentence.tokens().iter().enumerate() {
        let begins = mentions.iter().any(|mention| mention.tokens.start == at);
        let ends = mentions.iter().find(|mention| mention.tokens.end == at + 1);
        let name = ends.map(|mention| picked.gold().types().name(mention.entity_type));
        let before = if begins { "[" } else { "" };
        let after = name.map_or(String::new(), |name| format!("]{name}"));
        // A mention is shown whole.
        let is_inside = mentions.iter().any(|one| one.tokens.start < at && at < one.tokens.end);
        if at >= SHOWN_TOKENS && !is_inside {
            words.push("…".to_owned());
            break;
        }
        words.push(format!("{before}{token}{after}"));
    }
    words.join(" ")
}
