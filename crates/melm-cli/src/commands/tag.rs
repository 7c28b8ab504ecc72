//! `melm tag`: writes a file with predicted tags or spans.

use std::io::Write;
use std::path::PathBuf;
use std::time::Instant;

use melm::Tagger;
use melm::files::sha256;
use melm::shard::{ShardContent, ShardFile, ShardHeader, ShardInput, ShardUnit, fingerprint_model};
use melm::stage::Control;
use melm::tagger::{FileToTag, TagSummary};
use melm_text::conll::{Layout, Separator};
use melm_text::jsonl::has_text_only;
use melm_text::spans::{TextKind, read_plain};
use melm_text::{
    Document, Format, ReadOptions, Source, Structure, WriteSettings, find_losses, read_documents,
    shown,
};

use crate::args::Tag;
use crate::command_line::CommandLine;
use crate::failure::Failure;
use crate::input;
use crate::machine::{self, TaggingDevice};
use crate::output::{self, Output, check_files, check_output, choose_format};
use crate::progress::Progress;
use crate::sharding::{report_shard, shard_path};
use crate::terminal::{Terminal, count};

pub(crate) fn run(
    command: &Tag,
    command_line: &CommandLine,
    terminal: &Terminal,
) -> Result<(), Failure> {
    let started = Instant::now();
    let out = shard_path(&command.output.out, command.shard.shard);
    check_output(&out, command.output.force)?;
    let options = input::read_options(&command.input, &command.file)?;
    let source = input::open(&command.file, &command.input)?;
    let options = ReadOptions { keeps_unlabelled: true, ..options };
    let is_prose = is_prose(command, &source, &options)?;
    let options = match options.format {
        // Objects with a text and without tokens are examples of Prodigy that nobody has annotated.
        None if !is_prose && has_text_only(source.text()) => {
            ReadOptions { format: "prodigy".parse().ok(), ..options }
        }
        _ => options,
    };
    let job = TagJob { command, command_line, options: &options, out, started, terminal };
    if is_prose {
        return job.tag_texts(&source, &read_plain(&source), Format::CONLL);
    }
    let structure = match options.format.unwrap_or_else(|| Format::detect(&source)) {
        format if format == Format::CONLL || format == Format::JSONL => None,
        _ => Some(Structure::detect(&source, &options)?),
    };
    if let Some(documents) = structure.as_ref().and_then(Structure::documents) {
        terminal.info_all(documents.notes());
        return job.tag_texts(&source, &documents.documents, documents.format);
    }
    let file = FileToTag::new(source, &options)?;
    let format = choose_format(command.to, &command.output.out, file.survey().format())?;
    if format == file.survey().format() {
        return job.tag_rows(file);
    }
    let (documents, _) = read_documents(file.source(), &options, true)?;
    job.tag_texts(file.source(), &documents, format)
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
        TextKind::Unclear(doubt) => Err(Failure::Usage {
            message: format!("`{}` may be plain text or CoNLL rows: {doubt}", source.name()),
            hint: "pass `--plain` for plain text, or `--format conll` for rows",
        }),
    }
}

/// One execution of the command.
struct TagJob<'a> {
    command: &'a Tag,
    command_line: &'a CommandLine,
    options: &'a ReadOptions,
    /// The output, or the file of the shard.
    out: PathBuf,
    started: Instant,
    terminal: &'a Terminal,
}

/// A tagger on its device.
struct OpenTagger {
    tagger: Tagger,
    device_name: String,
    arithmetic: String,
}

impl TagJob<'_> {
    /// Tags texts, and writes them with the predicted spans. `usual` is the format for an output without an ending.
    fn tag_texts(
        &self,
        source: &Source,
        documents: &[Document],
        usual: Format,
    ) -> Result<(), Failure> {
        let (command, terminal) = (self.command, self.terminal);
        refuse_probabilities(command)?;
        let format = choose_format(command.to, &command.output.out, usual)?;
        let shard = command.shard.shard;
        if shard.is_none() {
            check_files(&self.out, command.output.force, format)?;
        }
        let own = shard.map_or(documents, |shard| &documents[shard.range(documents.len())]);
        let open = self.open_tagger()?;
        let n_sentences = own.iter().map(|document| document.sentences().len()).sum();
        terminal.info(&format!(
            "tagging {} in {} of `{}`, writing {}; {}",
            count(n_sentences, "sentence"),
            count(own.len(), "text"),
            source.name(),
            format.name(),
            open.device_name
        ));
        self.warn_about_language(source, own, &open)?;
        let mut progress = Progress::for_steps("tagging", terminal);
        let (labelled, summary) = open.tagger.tag_documents(own, &mut |done, total| {
            progress.set_step(done, total);
            Control::Continue
        })?;
        drop(progress);
        terminal.info_all(summary.truncation.notes());
        let scheme = open.tagger.model().tags().scheme();
        if shard.is_none() {
            output::report_losses(&find_losses(&labelled, format), format, terminal);
            let files = format.write(&labelled, &WriteSettings::new(scheme))?;
            output::write_files(&self.out, command.output.force, &files)?;
            self.report(&summary);
            return Ok(());
        }
        let lines = labelled.iter().map(|document| document.to_stored_line() + "\n");
        let (format, scheme) = (format.name().to_owned(), scheme.to_string());
        let content = ShardContent::Documents { format, scheme };
        let input = describe_input(source, documents.len(), ShardUnit::Text);
        self.write_shard(input, &open, content, lines.collect::<String>().as_bytes())?;
        self.report(&summary);
        Ok(())
    }

    /// Warns if the tagger does not know the script or the language of documents.
    fn warn_about_language(
        &self,
        source: &Source,
        documents: &[Document],
        open: &OpenTagger,
    ) -> Result<(), Failure> {
        let sentences: Vec<Vec<&str>> = documents
            .iter()
            .flat_map(|document| {
                let sentences = document.sentences().iter();
                sentences.map(|sentence| document.sentence_tokens(sentence).collect())
            })
            .collect();
        let what = format!("`{}`", source.name());
        self.terminal.warn_all(open.tagger.coverage_warning(&what, &sentences)?);
        Ok(())
    }

    /// Says what was tagged, and how long it took.
    fn report(&self, summary: &TagSummary) {
        let seconds = self.started.elapsed().as_secs_f64();
        self.terminal.info(&format!("tagged {} in {seconds:.1} s", summary.line()));
    }

    /// Tags CoNLL rows or JSON lines, and leaves everything else unchanged.
    fn tag_rows(&self, file: FileToTag) -> Result<(), Failure> {
        let open = self.open_tagger()?;
        refuse_types_with_spaces(&file, &open.tagger)?;
        let n = file.survey().n_sentences;
        let Some(shard) = self.command.shard.shard else {
            let mut out = Output::create(&self.out, self.command.output.force)?;
            let summary = self.write_rows(&file, n, &open, &mut out)?;
            out.finish()?;
            self.report(&summary);
            return Ok(());
        };
        let sentences = shard.range(n);
        let n_own = sentences.len();
        let file = file.with_sentences(sentences);
        let mut rows = Vec::new();
        let summary = self.write_rows(&file, n_own, &open, &mut rows)?;
        let input = describe_input(file.source(), n, ShardUnit::Sentence);
        self.write_shard(input, &open, ShardContent::Rows, &rows)?;
        self.report(&summary);
        Ok(())
    }

    /// Writes the `n` sentences of a file that are to be tagged.
    fn write_rows(
        &self,
        file: &FileToTag,
        n: usize,
        open: &OpenTagger,
        out: &mut dyn Write,
    ) -> Result<TagSummary, Failure> {
        let (source, survey) = (file.source(), file.survey());
        let change = match (file.has_tags(), survey.format() == Format::CONLL) {
            (true, true) => "replacing its tags",
            (true, false) => "replacing its tags by tag names",
            (false, true) => "adding the tags as a last column",
            (false, false) => "adding the tags",
        };
        let (n, name, device) = (count(n, "sentence"), source.name(), &open.device_name);
        self.terminal.info(&format!("tagging {n} of `{name}`, {change}; {device}"));
        if file.has_tags() {
            input::report_structure(&survey.structure, self.terminal);
        }
        let what = format!("`{}`", source.name());
        self.terminal.warn_all(open.tagger.coverage_warning(&what, &file.sample())?);
        let mut progress = Progress::for_steps("tagging", self.terminal);
        let with_probabilities = self.command.probabilities;
        let tagged = open.tagger.tag_file(file, with_probabilities, out, &mut |done, total| {
            progress.set_step(done, total);
            Control::Continue
        });
        drop(progress);
        let name = self.out.display().to_string();
        let summary = tagged.map_err(|error| Failure::from(error).with_output_name(&name))?;
        self.terminal.info_all(summary.truncation.notes());
        Ok(summary)
    }

    fn open_tagger(&self) -> Result<OpenTagger, Failure> {
        let TaggingDevice { device, description, is_int8 } =
            machine::tagging_device(&self.command.device_options)?;
        let mut arithmetic = device.arithmetic().to_owned();
        let mut tagger = Tagger::open(&self.command.model)?.with_device(device);
        if is_int8 {
            tagger = tagger.with_int8()?;
            arithmetic += ", int8";
        }
        Ok(OpenTagger { tagger, device_name: description, arithmetic })
    }

    /// Writes the content of a shard.
    fn write_shard(
        &self,
        input: ShardInput,
        open: &OpenTagger,
        content: ShardContent,
        bytes: &[u8],
    ) -> Result<(), Failure> {
        let command = self.command;
        let Some(shard) = command.shard.shard else { return Ok(()) };
        let model = fingerprint_model(&command.model)?;
        let options = format!("{:?}", self.options);
        let header = ShardHeader::new("tag", shard, input, model, &open.arithmetic, content)
            .with_setting("probabilities", command.probabilities)
            .with_setting("plain", command.plain)
            .with_setting("input format", sha256(options.as_bytes()))
            .with_arguments(self.command_line.arguments());
        let out = Output::create(&self.out, command.output.force)?;
        out.write_and_finish(ShardFile::to_bytes(header.clone(), bytes))?;
        report_shard(&header, &command.output.out, self.terminal);
        Ok(())
    }
}

/// Returns the entry of the input in the header of a shard.
fn describe_input(source: &Source, n: usize, unit: ShardUnit) -> ShardInput {
    let sha256 = sha256(&source.content());
    ShardInput { name: source.name().to_owned(), sha256, n, unit }
}

/// Fails if the tagger has an entity type with a space, and the columns of the file are separated by spaces.
fn refuse_types_with_spaces(file: &FileToTag, tagger: &Tagger) -> Result<(), Failure> {
    let is_spaced = |layout: &Layout| layout.separator == Separator::Space;
    let types = tagger.model().tags().types();
    let mut names = types.iter().map(|entity_type| types.name(entity_type));
    match names.find(|name| name.contains(' ')) {
        Some(name) if file.survey().layout().is_some_and(is_spaced) => Err(Failure::Usage {
            message: format!(
                "the tagger has the entity type `{}`, and spaces separate the columns of `{}`",
                shown(name),
                file.source().name()
            ),
            hint: "convert the file first: `melm convert IN --separator tab -o OUT`",
        }),
        _ => Ok(()),
    }
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
