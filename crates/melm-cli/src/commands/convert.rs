//! `melm convert`: the same sentences in another format or scheme.

use std::io::Write as _;
use std::path::{Path, PathBuf};

use melm_text::conll::{ConllWriter, Separator};
use melm_text::jsonl::{JsonlWriter, TagNames};
use melm_text::{
    EntityTypes, Error, Format, Part, ReadOptions, Reader, Record, Scheme, Source, Survey, Tag,
    Writer, mentions, merged_by_io, write_tags,
};

use crate::args::Convert;
use crate::failure::Failure;
use crate::input;
use crate::output::{Output, require_free};
use crate::progress::Progress;
use crate::terminal::Terminal;

pub(crate) fn run(command: &Convert, terminal: &Terminal) -> Result<(), Failure> {
    let (out, force) = (&command.output.out, command.output.force);
    let names_file = command.tag_ids.then(|| names_beside(out)).transpose()?;
    require_free(out, force)?;
    names_file.iter().try_for_each(|names| require_free(names, force))?;
    let options = input::options(&command.reading)?;
    let source = input::open(&command.file, &command.reading)?;

    // The output's scheme must be known before its first tag is written.
    let needs_survey = command.to_scheme.is_none() && (command.repair || names_file.is_some());
    let known =
        if needs_survey { Some(Survey::read(&source, &options, |_, _, _| {})?) } else { None };
    let scheme = command.to_scheme.or(known.as_ref().map(|survey| survey.scheme.scheme));
    let names = match (&names_file, scheme) {
        (Some(_), Some(scheme)) => Some(names_of(&source, &options, scheme)?),
        _ => None,
    };

    let reader = Reader::new(&source, &options)?;
    let key = match &reader {
        Reader::Jsonl(reader) => reader.tags_key(),
        Reader::Conll(..) => DEFAULT_KEY,
    };
    let to = to_format(command, reader.format());
    let file = Output::create(out, force)?;
    let writer = match to {
        Format::Conll => Writer::Conll(ConllWriter::new(file, scheme, command.separator)),
        Format::Jsonl => Writer::Jsonl(JsonlWriter::new(file, scheme, key, names.clone())),
    };
    let mut pass = Pass { writer, scheme, merged: 0, tags: Vec::new(), failed: None };
    let survey = pass.write(&source, &options, command, terminal)?;
    let merged = pass.merged;
    pass.writer.finish().finish()?;
    if let (Some(path), Some(names)) = (names_file, names) {
        let mut file = Output::create(&path, force)?;
        let name = file.name().to_owned();
        writeln!(file, "{}", names.join("\n")).map_err(|e| Output::failed(&name, e))?;
        file.finish()?;
    }
    say(&survey, to, scheme.unwrap_or(survey.scheme.scheme), merged, terminal);
    Ok(())
}

/// One pass that reads, checks and writes. What it wrote is thrown away if the file is not sound.
struct Pass {
    writer: Writer<Output>,
    /// `None`: tags stay as they are.
    scheme: Option<Scheme>,
    merged: usize,
    tags: Vec<Tag>,
    failed: Option<Failure>,
}

impl Pass {
    fn write(
        &mut self,
        source: &Source,
        options: &ReadOptions,
        command: &Convert,
        terminal: &Terminal,
    ) -> Result<Survey, Failure> {
        let to_spaces = command.separator == Some(Separator::Space);
        let mut progress = Progress::new("converting", source.text().len(), terminal);
        let mut n_sentences = 0;
        let survey = Survey::read(source, options, |record, types, position| {
            n_sentences += 1;
            if self.failed.is_none() {
                self.failed = match record.tokens.iter().find(|t| to_spaces && t.contains(' ')) {
                    Some(token) => {
                        let token = token.to_string();
                        Some(Error::Unwritable { token, sentence: n_sentences }.into())
                    }
                    None => self.write_sentence(record, types).err(),
                };
            }
            progress.at(position);
        })?;
        survey.require_sound(source, command.repair)?;
        self.writer.write_after(&survey.after).map_err(|e| Output::failed("output", e))?;
        match self.failed.take() {
            Some(failure) => Err(failure),
            None => Ok(survey),
        }
    }

    fn write_sentence(&mut self, record: &Record<'_>, types: &EntityTypes) -> Result<(), Failure> {
        let written = match self.scheme {
            None => self.writer.write(record, &record.tags, types),
            Some(scheme) => {
                self.tags.resize(record.tags.len(), Tag::Outside);
                write_tags(mentions(&record.tags), scheme, &mut self.tags);
                if scheme == Scheme::Io {
                    self.merged += merged_by_io(&record.tags);
                }
                self.writer.write(record, &self.tags, types)
            }
        };
        written.map_err(|error| Output::failed("output", error))
    }
}

fn say(survey: &Survey, to: Format, scheme: Scheme, merged: usize, terminal: &Terminal) {
    let from = survey.scheme.scheme;
    terminal.say(&format!(
        "{} sentences, {} tokens: {} {from} to {} {scheme}",
        survey.n_sentences,
        survey.n_tokens,
        survey.format.name(),
        to.name(),
    ));
    if !survey.breaks.is_empty() {
        let n = survey.breaks.len();
        let s = if n == 1 { "" } else { "s" };
        terminal.say(&format!("repaired {n} tag{s} that {from} does not allow"));
    }
    if merged > 0 {
        terminal.say(&format!(
            "merged {merged} mentions into the one before: IO cannot separate mentions that touch"
        ));
    }
    let n_lost = survey.layout.as_ref().map_or(0, |layout| layout.n_columns - 2);
    if to == Format::Jsonl && n_lost > 0 {
        terminal.say(&format!("left out {n_lost} other columns: JSON lines hold tokens and tags"));
    }
}

/// Where tags are written unless the input has another key for them.
const DEFAULT_KEY: &str = "ner_tags";

fn to_format(command: &Convert, from: Format) -> Format {
    let by_name = || match command.output.out.to_str() {
        Some("-") | None => from,
        Some(name) => Format::of_name(name),
    };
    command.to.unwrap_or_else(by_name)
}

fn names_beside(out: &Path) -> Result<PathBuf, Failure> {
    if out == Path::new("-") {
        return Err(Failure::Usage {
            message: "tag ids need a file for their names".into(),
            hint: "name the output with `-o FILE`",
        });
    }
    let mut name = out.as_os_str().to_owned();
    name.push(".names");
    Ok(name.into())
}

/// Every tag the scheme can spell for the types of the file, `O` first.
fn names_of(source: &Source, options: &ReadOptions, scheme: Scheme) -> Result<TagNames, Failure> {
    let types = Survey::read(source, options, |_, _, _| {})?.types;
    let parts = [Part::Begin, Part::Inside, Part::End, Part::Single];
    let mut names = vec!["O".to_owned()];
    for entity_type in types.sorted() {
        for part in parts.into_iter().filter(|&part| scheme.has(part)) {
            names.push(types.spell(Tag::In(part, entity_type), scheme).to_string());
        }
    }
    Ok(names)
}
