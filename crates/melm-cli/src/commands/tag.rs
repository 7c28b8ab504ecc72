//! `melm tag`: writes a file with predicted tags or spans.

use melm::Tagger;
use melm::stage::Control;
use melm::tagger::{FileToTag, Truncation};
use melm_text::jsonl::has_text_only;
use melm_text::spans::{TextKind, read_plain};
use melm_text::{
    Document, Format, ReadOptions, Source, Structure, WriteSettings, find_losses, read_documents,
};

use crate::args::Tag;
use crate::commands::train::describe_truncation;
use crate::failure::Failure;
use crate::input;
use crate::machine;
use crate::output::{self, Output, choose_format, refuse_existing};
use crate::progress::Progress;
use crate::terminal::{Terminal, count};

pub(crate) fn run(command: &Tag, terminal: &Terminal) -> Result<(), Failure> {
    refuse_existing(&command.output.out, command.output.force)?;
    let options = input::read_options(&command.input, &command.file)?;
    let source = input::open(&command.file, &command.input)?;
    let options = ReadOptions { keeps_unlabelled: true, ..options };
    if is_prose(command, &source, &options)? {
        return tag_texts(command, &source, &read_plain(&source), Format::CONLL, terminal);
    }
    let options = match options.format {
        // Objects with a text and without tokens are examples of Prodigy that nobody has annotated.
        None if has_text_only(source.text()) => {
            ReadOptions { format: "prodigy".parse().ok(), ..options }
        }
        _ => options,
    };
    let structure = match options.format.unwrap_or_else(|| Format::detect(&source)) {
        format if format == Format::CONLL || format == Format::JSONL => None,
        _ => Some(Structure::detect(&source, &options)?),
    };
    if let Some(documents) = structure.as_ref().and_then(Structure::documents) {
        documents.notes().iter().for_each(|note| terminal.info(note));
        return tag_texts(command, &source, &documents.documents, documents.format, terminal);
    }
    let file = FileToTag::new(source, &options)?;
    let format = choose_format(command.to, &command.output.out, file.survey().format())?;
    if format == file.survey().format() {
        return tag_rows(command, &file, terminal);
    }
    let (documents, _) = read_documents(file.source(), &options, true)?;
    tag_texts(command, file.source(), &documents, format, terminal)
}

/// Returns true if the input is plain text. Fails if it is not clear.
fn is_prose(command: &Tag, source: &Source, options: &ReadOptions) -> Result<bool, Failure> {
    let is_open = options.format.is_none() && options.token_column.is_none();
    if command.plain || !is_open || Format::detect(source) != Format::CONLL {
        return Ok(command.plain);
    }
    match TextKind::detect(source.text()) {
        TextKind::Rows => Ok(false),
        TextKind::Prose => Ok(true),
        TextKind::Unclear => Err(Failure::Usage {
            message: format!(
                "`{}` may be plain text or CoNLL rows: its lines have the same number of words",
                source.name()
            ),
            hint: "pass `--plain` for plain text, or `--format conll` for rows",
        }),
    }
}

/// Tags texts, and writes them with the predicted spans. `usual` is the format for an output without an ending.
fn tag_texts(
    command: &Tag,
    source: &Source,
    documents: &[Document],
    usual: Format,
    terminal: &Terminal,
) -> Result<(), Failure> {
    refuse_probabilities(command)?;
    let format = choose_format(command.to, &command.output.out, usual)?;
    let (device, device_name) = machine::device(&command.device_options)?;
    let tagger = Tagger::open(&command.model)?.with_device(device);
    let n_sentences = documents.iter().map(|document| document.sentences().len()).sum();
    terminal.info(&format!(
        "tagging {} in {} of `{}`, writing {}; {device_name}",
        count(n_sentences, "sentence"),
        count(documents.len(), "text"),
        source.name(),
        format.name()
    ));
    let mut progress = Progress::for_bytes("tagging", n_sentences, terminal);
    let (labelled, truncation) = tagger.tag_documents(documents, &mut |done, _| {
        progress.set_position(done);
        Control::Continue
    })?;
    drop(progress);
    output::report_losses(&find_losses(&labelled, format), format, terminal);
    let settings = WriteSettings { scheme: tagger.model().tags().scheme() };
    let files = format.write(&labelled, &settings)?;
    output::write_files(&command.output.out, command.output.force, &files)?;
    report_truncation(truncation, terminal);
    Ok(())
}

/// Fails if probabilities are wanted, which texts with spans cannot hold.
fn refuse_probabilities(command: &Tag) -> Result<(), Failure> {
    if !command.probabilities {
        return Ok(());
    }
    Err(Failure::Usage {
        message: "`--probabilities` needs CoNLL or JSON lines with tokens, as input and output"
            .into(),
        hint: "leave it out",
    })
}

/// Tags CoNLL rows or JSON lines, and leaves everything else unchanged.
fn tag_rows(command: &Tag, file: &FileToTag, terminal: &Terminal) -> Result<(), Failure> {
    let (device, device_name) = machine::device(&command.device_options)?;
    let tagger = Tagger::open(&command.model)?.with_device(device);
    let (source, survey) = (file.source(), file.survey());
    let change = match (file.has_tags(), survey.format() == Format::CONLL) {
        (true, true) => "replacing its tags",
        (true, false) => "replacing its tags by tag names",
        (false, true) => "adding the tags as a last column",
        (false, false) => "adding the tags",
    };
    let n = count(survey.n_sentences, "sentence");
    terminal.info(&format!("tagging {n} of `{}`, {change}; {device_name}", source.name()));
    if file.has_tags() {
        input::report_structure(&survey.structure, terminal);
    }
    let mut out = Output::create(&command.output.out, command.output.force)?;
    let mut progress = Progress::for_bytes("tagging", source.text().len(), terminal);
    let name = out.name().to_owned();
    let truncation = tagger
        .tag_file(file, command.probabilities, &mut out, &mut |done, _| {
            progress.set_position(done);
            Control::Continue
        })
        .map_err(|error| Failure::from(error).with_output_name(&name))?;
    drop(progress);
    out.finish()?;
    report_truncation(truncation, terminal);
    Ok(())
}

fn report_truncation(truncation: Truncation, terminal: &Terminal) {
    for line in describe_truncation(truncation) {
        terminal.info(&line);
    }
}
