//! `melm filter`: judges drafts with a trained tagger, and applies the decisions of a person.

use std::num::NonZeroUsize;
use std::path::Path;

use melm::augment::judge_again;
use melm::draft::{AppliedDecisions, CandidateLines, Decisions, Draft, read_lines, to_lines};
use melm::judge::{FilterMode, FilterSettings, Judge};
use melm::random::Seed;
use melm::rate::Rate;
use melm::stage::{Event, Run};
use melm::tagger::TaggerModel;
use melm_text::jsonl::format_names;
use melm_text::{Corpus, Encoding, Format, Language, Sentence, count_of};

use crate::args::Filter;
use crate::commands::augment::report;
use crate::failure::Failure;
use crate::input;
use crate::labelled;
use crate::machine;
use crate::observer::ProgressObserver;
use crate::output::{self, Output, check_files, check_output, is_stream_output, with_suffix};
use crate::terminal::{Terminal, count};

pub(crate) fn run(command: &Filter, terminal: &Terminal) -> Result<(), Failure> {
    refuse_unused_threshold(command)?;
    let inputs = command.files.iter().map(|input| input.path.as_path());
    let inputs = inputs.chain([command.drafts.as_path()]).chain(command.decisions.as_deref());
    labelled::refuse_second_stdin(inputs)?;
    let force = command.output.force;
    let augmented = command.augmented.as_deref();
    if let Some(path) = augmented {
        output::refuse_same_output(&command.output.out, "--augmented", path)?;
        check_output(path, force)?;
    }
    let out = Output::create(&command.output.out, force)?;
    let corpus = &labelled::read(&command.files, &command.input, terminal)?;
    if augmented.is_some() && corpus.languages().len() > 1 {
        return Err(several_languages());
    }
    augmented.map_or(Ok(()), |path| check_augmented(path, force, corpus))?;
    let source = input::open_as(&command.drafts, Encoding::Utf8)?;
    let mut lines = read_lines(Path::new(source.name()), source.text(), corpus)?;
    if augmented.is_some() && has_other_language(&lines, corpus) {
        return Err(several_languages());
    }
    let decisions = command.decisions.as_deref().map(read_decisions).transpose()?;
    if let Some(tagger) = &command.tagger {
        judge(command, tagger, &mut lines.drafts, corpus, terminal)?;
    }
    if let Some(decisions) = decisions {
        report_decisions(decisions.apply(&mut lines, source.text())?, terminal);
    }
    let text: String = lines.text.iter().map(|line| format!("{}\n", line.json)).collect();
    out.write_and_finish(to_lines(&lines.drafts, corpus) + &text)?;
    if let Some(augmented) = augmented {
        write_augmented(augmented, force, corpus, &lines)?;
    }
    report::print_drafts(&lines.drafts, corpus, terminal);
    let n_text = lines.text.iter().filter(|line| !line.verdict.is_decided()).count();
    if n_text > 0 {
        let n = count_of(n_text, lines.text.len(), "sentence");
        terminal.info(&format!("{n} of unlabelled text not judged: left as they are"));
    }
    Ok(())
}

/// Fails if `--threshold` has no effect.
fn refuse_unused_threshold(command: &Filter) -> Result<(), Failure> {
    let (message, hint) = match (command.threshold, &command.tagger, command.mode) {
        (Some(_), None, _) => (
            "`--threshold` needs a tagger that judges the drafts",
            "add `--tagger DIR`, or leave out `--threshold`",
        ),
        (Some(_), Some(_), mode) if mode != FilterMode::Probability => (
            "`--threshold` needs `--mode probability`",
            "add `--mode probability`, or leave out `--threshold`",
        ),
        _ => return Ok(()),
    };
    Err(Failure::Usage { message: message.into(), hint })
}

/// Fails if TRAIN and the kept drafts could not be written to this file, in the format of TRAIN.
fn check_augmented(path: &Path, force: bool, train: &Corpus) -> Result<(), Failure> {
    let format = train.files().first().map_or(Format::CONLL, |file| file.format());
    output::refuse_other_ending(path, format)?;
    check_files(path, force, format)
}

/// Returns true if a sentence of unlabelled text has a language that the training file does not have.
fn has_other_language(lines: &CandidateLines, corpus: &Corpus) -> bool {
    let mut codes = lines.text.iter().filter_map(|line| line.language.as_deref());
    codes.any(|code| corpus.find(Some(code), 0).is_none())
}

fn several_languages() -> Failure {
    Failure::Usage {
        message: "`--augmented` cannot write several languages to one file".into(),
        hint: "leave it out and use the verdicts in OUT, or use `melm augment`, which writes a file for each language",
    }
}

fn report_decisions(applied: AppliedDecisions, terminal: &Terminal) {
    terminal.info(&format!(
        "{} accepted, {} of them not kept by the filter; {} rejected, {} of them kept by the filter",
        count(applied.accepted, "sentence"),
        applied.added,
        count(applied.rejected, "sentence"),
        applied.removed,
    ));
}

fn read_decisions(path: &Path) -> Result<Decisions, Failure> {
    let source = input::open_as(path, Encoding::Utf8)?;
    Ok(Decisions::read(Path::new(source.name()), source.text())?)
}

/// Judges the drafts with the tagger in `folder`. Replaces earlier verdicts.
fn judge(
    command: &Filter,
    folder: &Path,
    drafts: &mut [Draft],
    corpus: &Corpus,
    terminal: &Terminal,
) -> Result<(), Failure> {
    let tagger = TaggerModel::open(folder)?;
    let (device, device_name) = machine::device(&command.device_options)?;
    terminal.info(&format!(
        "judging {} of {} with {}; {device_name}",
        count(drafts.len(), "draft"),
        labelled::describe(corpus),
        folder.display()
    ));
    let threshold = command.threshold.unwrap_or(Rate::constant(0.5));
    let (judges, votes) = (NonZeroUsize::MIN, Rate::constant(1.0));
    let settings = FilterSettings { mode: command.mode, threshold, judges, votes };
    let judge = Judge::new(&tagger, settings, corpus.types());
    let mut observer = ProgressObserver::new(u64::MAX, terminal);
    let mut on_event = |stage: &'static str, event: Event<'_>| observer.on_event(stage, event);
    // Judging uses no random numbers and saves no state.
    let mut run = Run { seed: Seed(0), folder: None, observer: &mut on_event };
    let stage = &mut run.stage("filter");
    Ok(judge_again(drafts, &judge, corpus, &device, stage)?)
}

/// Writes the training file, followed by the kept drafts and the kept sentences of unlabelled text. The names of tag ids
/// are written next to it.
fn write_augmented(
    path: &Path,
    force: bool,
    train: &Corpus,
    lines: &CandidateLines,
) -> Result<(), Failure> {
    let drafts = lines.drafts.iter().filter(|draft| draft.verdict.is_kept());
    let text = lines.text.iter().filter(|line| line.verdict.is_kept());
    let mut kept: Vec<_> = drafts.map(|draft| draft.sentence.clone()).collect();
    // There is at most one language.
    let own = |sentence: Sentence| match train.languages() {
        [] => sentence,
        _ => sentence.with_language(Language::from_index(0)),
    };
    kept.extend(text.map(|line| own(line.sentence.clone())));
    for text in train.append_sentences(&kept, true)? {
        output::write_files(path, force, &text.files)?;
        if let Some(names) = text.tag_names.filter(|_| !is_stream_output(path)) {
            output::write(&with_suffix(path, ".names"), force, &format_names(&names))?;
        }
    }
    Ok(())
}
