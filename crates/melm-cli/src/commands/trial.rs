//! `melm trial`: measures by cross-validation whether augmentation helps.

use std::num::{NonZeroU16, NonZeroU64};
use std::path::Path;

use melm::notes::type_warnings;
use melm_eval::{Ledger, System, Trial, TrialDefaults, TrialResult};
use melm_text::{Corpus, KnownSentences};
use serde_json::{Map, Value, json};

use crate::args;
use crate::command_line::CommandLine;
use crate::commands::reproduce::Experiment;
use crate::failure::Failure;
use crate::interrupt::DeferInterrupt;
use crate::labelled;
use crate::machine;
use crate::output;
use crate::terminal::{Terminal, count};
use crate::unlabelled;

pub(crate) fn run(
    command: &args::Trial,
    command_line: &CommandLine,
    terminal: &Terminal,
) -> Result<(), Failure> {
    refuse_language(&command.file)?;
    // Fail before the trial, not after it.
    output::require_stdout()?;
    let text = command.text.unlabelled.iter().map(|text| text.path.as_path());
    let inputs = [command.file.as_path()].into_iter().chain(command.dev.as_deref()).chain(text);
    labelled::refuse_second_stdin(inputs.chain(command.text.held_out.iter().map(AsRef::as_ref)))?;
    let trial = describe(command)?;
    let read = |path: &Path| labelled::read_file(path, &command.input, terminal);
    let train = read(&command.file)?;
    let dev = command.dev.as_deref().map(read).transpose()?;
    terminal.warn_all(type_warnings(&train));
    if let Some(dev) = &dev {
        labelled::warn_about_dev(&train, dev, terminal);
    }
    let trial = with_text(trial, command, &train, dev.as_ref(), terminal)?;
    let (grid, folds) = trial.prepare(&train, dev.as_ref())?;
    let cells = grid.cells();
    let experiment = Experiment::open(&command.comparison, grid, folds, terminal)?;
    let deferred = DeferInterrupt::new();
    terminal.info(&format!(
        "cross-validating {} with {} folds, {}, {} each: {}",
        labelled::describe(&train),
        trial.n_folds(),
        count(trial.n_seeds(), "seed"),
        trial.budget(),
        experiment.describe(&cells),
    ));
    let mut ledger = match &command.out {
        Some(dir) => Ledger::open(dir, "ledger.jsonl")?,
        None => Ledger::in_memory(),
    };
    if let Some(dir) = &command.out {
        let train = labelled::describe(&train);
        command_line.write(dir, "trial", trial_record(&trial, &train))?;
    }
    experiment.run(&cells, &mut ledger, terminal).map_err(|failure| match command.out {
        Some(_) => failure,
        None => failure.without_saved_state("; pass `-o DIR` to save finished cells"),
    })?;
    drop(deferred);
    let lines = experiment.runner.current_lines(ledger.lines().to_vec(), &cells);
    print_result(&trial, &trial.result(&lines), command.json)
}

/// Describes the trial of the options. What they leave out depends on the device: a CPU gets a smaller trial.
fn describe(command: &args::Trial) -> Result<Trial, Failure> {
    let (device, _) = machine::device(&command.comparison.device_options)?;
    let defaults = TrialDefaults::for_device(&device);
    let seeds = command.seeds.or(NonZeroU16::new(defaults.seeds)).unwrap_or(NonZeroU16::MIN);
    let updates = command.updates.or(NonZeroU64::new(defaults.updates)).unwrap_or(NonZeroU64::MIN);
    let mut methods = command.methods.clone();
    if methods.is_empty() {
        methods.extend(defaults.methods.iter().copied().map(System::Method));
    }
    Ok(Trial::new(usize::from(command.folds), seeds, updates, &methods)?)
}

/// Fails if the file is given as `LANG=FILE`.
fn refuse_language(file: &Path) -> Result<(), Failure> {
    if file.exists() || !file.to_string_lossy().contains('=') {
        return Ok(());
    }
    Err(Failure::Usage {
        message: format!(
            "`{}` does not exist, and `melm trial` reads one language only",
            file.display()
        ),
        hint: "pass the file without `LANG=`",
    })
}

/// Adds the unlabelled text, if there is any, without the sentences of TRAIN, of the dev set and of held-out files. Fails
/// if a text has a language, because a trial has only one.
fn with_text(
    trial: Trial,
    command: &args::Trial,
    train: &Corpus,
    dev: Option<&Corpus>,
    terminal: &Terminal,
) -> Result<Trial, Failure> {
    if let Some(code) = command.text.unlabelled.iter().find_map(|text| text.language.as_ref()) {
        return Err(Failure::Usage {
            message: format!(
                "the text has the language `{code}`, but `melm trial` reads one language only"
            ),
            hint: "pass the text without `LANG=`",
        });
    }
    let has_text = !command.text.unlabelled.is_empty();
    unlabelled::check_held_out(&command.text, has_text, "`--unlabelled FILE`")?;
    let text = unlabelled::read(&command.text, train, &command.input, terminal)?;
    let Some(text) = text else { return Ok(trial) };
    let held_out = unlabelled::read_held_out(&command.text, train, &command.input, terminal)?;
    let trial = trial.with_text(&text, &KnownSentences::new(train, dev, &held_out))?;
    terminal.info_all(trial.text_note());
    Ok(trial)
}

/// What `melm report` needs to know about the trial, beside the ledger. `train` describes the training set.
fn trial_record(trial: &Trial, train: &str) -> Map<String, Value> {
    let systems: Vec<_> = trial.systems().iter().map(ToString::to_string).collect();
    let mut record = Map::new();
    record.insert("train".to_owned(), train.into());
    record.insert("folds".to_owned(), trial.n_folds().into());
    record.insert("budget".to_owned(), trial.budget().to_string().into());
    record.insert("systems".to_owned(), json!(systems));
    record
}

/// Prints the table and the verdict on the last method, as text or as JSON.
fn print_result(trial: &Trial, result: &TrialResult, as_json: bool) -> Result<(), Failure> {
    let systems = trial.systems();
    let last = systems.last().expect("a trial has a method");
    if as_json {
        return output::print_json(true, Some(&result.to_json(&systems)));
    }
    // Half the width of the interval is the smallest difference that would not contain zero. Without any drafts it is 0,
    // which says nothing about the data.
    let margin = result.difference_to_gold(last).and_then(|found| found.margin);
    let margin = margin.filter(|points| *points > 0.0);
    let power = margin.map_or(String::new(), |points| {
        format!("\nFor {last}, this trial can show differences of {points:.1} points or more.")
    });
    let verdict = result.verdict(last);
    output::print(&format!(
        "{}\nMicro-F1 in percent over {} folds, seeds averaged. Differences are paired by fold, with their 95 % \
         interval (Student's t,\ncorrected for the overlap of training sets: Nadeau and Bengio 2003).{power}\n\n{verdict}\n",
        result.markdown(),
        trial.n_folds()
    ))
}
