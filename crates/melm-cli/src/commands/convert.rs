//! `melm convert`: the same sentences in another format or scheme.

use std::io::Write as _;
use std::path::{Path, PathBuf};

use melm_text::conll::{ConllWriter, Separator};
use melm_text::jsonl::{JsonlWriter, TagNames};
use melm_text::{
    EntityTypes, Error, Format, ReadOptions, Reader, Record, Scheme, Source, Survey, Tag,
    TagPrefix, Writer, count_merged_by_io, mentions, write_tags,
};

use crate::args::Convert;
use crate::failure::Failure;
use crate::input;
use crate::output::{Output, beside, is_final, is_stdout, require_free};
use crate::progress::Progress;
use crate::terminal::{Terminal, count};

pub(crate) fn run(command: &Convert, terminal: &Terminal) -> Result<(), Failure> {
    let (out, force) = (&command.output.out, command.output.force);
    let names_file = command.tag_ids.then(|| names_beside(out)).transpose()?;
    require_free(out, force)?;
    names_file.iter().try_for_each(|names| require_free(names, force))?;
    let options = input::options(&command.reading, &command.file)?;
    let source = input::open(&command.file, &command.reading)?;
    let reader = Reader::new(&source, &options)?;
    let to = to_format(command, reader.format());
    require_used(command, to)?;

    // What goes into a pipe cannot be taken back, and the scheme of the output must be known
    // before its first tag is written: then the whole input is read before.
    let needs_scheme = command.to_scheme.is_none() && (command.repair || names_file.is_some());
    let before = if needs_scheme || is_final(out) {
        Some(require_writable(&source, &options, command)?)
    } else {
        None
    };
    let own = before.as_ref().filter(|_| needs_scheme).map(|survey| survey.scheme.scheme);
    let scheme = command.to_scheme.or(own);
    let names = match (&names_file, scheme) {
        (Some(_), Some(scheme)) => Some(names_of(&source, &options, scheme)?),
        _ => None,
    };
    let file = Output::create(out, force)?;
    let writer = writer(command, (&reader, to), (scheme, names.clone()), file);
    let mut pass = Pass { writer, scheme, merged: 0, repaired: 0, lost: 0, tags: Vec::new() };
    let survey = pass.write(&source, &options, command, terminal)?;
    let Pass { writer, merged, repaired, lost, .. } = pass;
    writer.finish().finish()?;
    if let (Some(path), Some(names)) = (names_file, names) {
        let mut file = Output::create(&path, force)?;
        let name = file.name().to_owned();
        writeln!(file, "{}", names.join("\n")).map_err(|e| Output::failed(&name, e))?;
        file.finish()?;
    }
    let scheme = scheme.unwrap_or(survey.scheme.scheme);
    input::say_columns(survey.layout(), terminal);
    say(&survey, (to, scheme), (merged, repaired, lost), terminal);
    Ok(())
}

/// Reads everything, and refuses what could not be written whole.
fn require_writable(
    source: &Source,
    options: &ReadOptions,
    command: &Convert,
) -> Result<Survey, Failure> {
    let (mut n_sentences, mut unwritable) = (0, None);
    let survey = Survey::read(source, options, |record, types, _| {
        n_sentences += 1;
        if unwritable.is_none() && command.separator == Some(Separator::Space) {
            unwritable = spaced_column(record, types).map(|column| (column, n_sentences));
        }
    })?;
    survey.require_sound(source, command.repair)?;
    match unwritable {
        Some((column, sentence)) => Err(Error::Unwritable { column, sentence }.into()),
        None => Ok(survey),
    }
}

/// Refuses options that would do nothing.
fn require_used(command: &Convert, to: Format) -> Result<(), Failure> {
    let unused = match to {
        Format::Conll => command.tag_ids.then_some("`--tag-ids` writes JSON lines only"),
        Format::Jsonl => command.separator.map(|_| "`--separator` is for CoNLL output only"),
    };
    match unused {
        Some(message) => Err(Failure::Usage {
            message: message.into(),
            hint: "leave it out, or name the format with `--to`",
        }),
        None => Ok(()),
    }
}

fn writer(
    command: &Convert,
    (reader, to): (&Reader<'_>, Format),
    (scheme, names): (Option<Scheme>, Option<TagNames>),
    file: Output,
) -> Writer<Output> {
    let (key, from) = match reader {
        Reader::Jsonl(reader) => (reader.keys().tags.as_str(), None),
        Reader::Conll(reader) => (DEFAULT_KEY, Some(reader.layout().separator)),
    };
    match (to, command.separator) {
        (Format::Jsonl, _) => Writer::Jsonl(JsonlWriter::new(file, scheme, key, names)),
        (Format::Conll, None) => Writer::Conll(ConllWriter::new(file, scheme)),
        (Format::Conll, Some(to)) => {
            Writer::Conll(ConllWriter::new(file, scheme).with_separator(to, from))
        }
    }
}

/// One pass that reads, checks and writes. What it wrote is thrown away if the file is not sound.
struct Pass {
    writer: Writer<Output>,
    /// `None`: tags stay as they are.
    scheme: Option<Scheme>,
    merged: usize,
    repaired: usize,
    /// Comments and keys that the other format has no place for.
    lost: usize,
    tags: Vec<Tag>,
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
        let mut failed = None;
        let survey = Survey::read(source, options, |record, types, position| {
            n_sentences += 1;
            if failed.is_none() {
                let spaced = to_spaces.then(|| spaced_column(record, types)).flatten();
                failed = match spaced {
                    Some(column) => {
                        Some(Error::Unwritable { column, sentence: n_sentences }.into())
                    }
                    None => self.write_sentence(record, types).err(),
                };
            }
            progress.at(position);
        })?;
        survey.require_sound(source, command.repair)?;
        if let Some(failure) = failed {
            return Err(failure);
        }
        self.writer
            .write_lines_after(&survey.lines_after)
            .map_err(|e| Output::failed("output", e))?;
        if matches!(self.writer, Writer::Jsonl(_)) {
            self.lost += survey.lines_after.len();
        }
        Ok(survey)
    }

    fn write_sentence(&mut self, record: &Record<'_>, types: &EntityTypes) -> Result<(), Failure> {
        self.lost += match &self.writer {
            Writer::Jsonl(_) if !record.rows.is_empty() => {
                // A comment that says nothing but the id is kept as the id.
                let id = record.id();
                record
                    .lines_before
                    .iter()
                    .filter(|line| id.is_none_or(|id| !line.ends_with(id)))
                    .count()
            }
            Writer::Conll(_) if record.rows.is_empty() => {
                record.fields.len() - 2 - usize::from(record.id().is_some())
            }
            _ => 0,
        };
        let as_it_was = self.scheme.is_none()
            && match &self.writer {
                Writer::Jsonl(_) => record.rows.is_empty(),
                Writer::Conll(writer) => !record.rows.is_empty() && !writer.replaces_separators(),
            };
        let written = match self.scheme {
            None if as_it_was => self.writer.copy(record),
            None => self.writer.write(record, &record.tags, types),
            Some(scheme) => {
                self.tags.resize(record.tags.len(), Tag::Outside);
                write_tags(mentions(&record.tags), scheme, &mut self.tags);
                if scheme == Scheme::Io {
                    self.merged += count_merged_by_io(&record.tags);
                }
                self.repaired += self.tags.iter().zip(&record.tags).filter(|(a, b)| a != b).count();
                self.writer.write(record, &self.tags, types)
            }
        };
        written.map_err(|error| Output::failed("output", error))
    }
}

/// A column that would fall apart, or vanish, between spaces.
fn spaced_column(record: &Record<'_>, types: &EntityTypes) -> Option<String> {
    let unfit = |column: &str| column.is_empty() || column.contains(' ');
    let in_rows = || {
        let rows = record.rows.iter().filter(|row| row.text.contains('\t'));
        let mut columns = rows.flat_map(|row| row.text.trim_end_matches(' ').split('\t'));
        columns.find(|column| unfit(column)).map(str::to_owned)
    };
    let token = record.tokens.iter().find(|token| unfit(token)).map(ToString::to_string);
    let types = || {
        let mut names = record.tags.iter().filter_map(|t| Some(types.name(t.entity_type()?)));
        names.find(|name| name.contains(' ')).map(str::to_owned)
    };
    token.or_else(types).or_else(in_rows)
}

fn say(
    survey: &Survey,
    (to, scheme): (Format, Scheme),
    (merged, repaired, lost): (usize, usize, usize),
    terminal: &Terminal,
) {
    let from = survey.scheme.scheme;
    terminal.say(&format!(
        "{}, {}: {} {from} to {} {scheme}",
        count(survey.n_sentences, "sentence"),
        count(survey.n_tokens, "token"),
        survey.format().name(),
        to.name(),
    ));
    let letters = survey.types.end_letters();
    if letters.iobes && letters.bilou {
        terminal
            .say(&format!("spelt every tag in {scheme}: end letters of two schemes were mixed"));
    } else if !survey.violations.is_empty() && from == scheme {
        terminal.say(&format!("repaired {} that {from} does not allow", count(repaired, "tag")));
    } else if !survey.violations.is_empty() {
        let breaks = count(survey.violations.len(), "place");
        terminal.say(&format!("repaired {breaks} where {from} was broken"));
    }
    if merged > 0 {
        terminal.say(&format!(
            "merged {} into the one before: IO cannot separate mentions that touch",
            count(merged, "mention")
        ));
    }
    let n_columns = survey.layout().map_or(0, |layout| layout.n_columns - 2);
    if to == Format::Jsonl && n_columns > 0 {
        let columns = count(n_columns, "other column");
        terminal.say(&format!("left out {columns}: JSON lines hold tokens and tags"));
    }
    if lost > 0 {
        let what = if to == Format::Jsonl { "comment line" } else { "other value" };
        terminal.say(&format!("left out {}: no place in {}", count(lost, what), to.name()));
    }
}

/// Where tags are written unless the input has another key for them.
const DEFAULT_KEY: &str = "ner_tags";

fn to_format(command: &Convert, from: Format) -> Format {
    let by_name = || match command.output.out.to_str() {
        Some("-") | None => from,
        Some(name) => Format::from_file_name(name).unwrap_or(from),
    };
    command.to.unwrap_or_else(by_name)
}

fn names_beside(out: &Path) -> Result<PathBuf, Failure> {
    if is_stdout(out) {
        return Err(Failure::Usage {
            message: "tag ids need a file for their names".into(),
            hint: "name the output with `-o FILE`",
        });
    }
    Ok(beside(out, ".names"))
}

/// Every tag the scheme can spell for the types of the file, `O` first.
fn names_of(source: &Source, options: &ReadOptions, scheme: Scheme) -> Result<TagNames, Failure> {
    let types = Survey::read(source, options, |_, _, _| {})?.types;
    let parts = [TagPrefix::Begin, TagPrefix::Inside, TagPrefix::End, TagPrefix::Single];
    let mut names = vec!["O".to_owned()];
    for entity_type in types.sorted_by_name() {
        for part in parts.into_iter().filter(|&part| scheme.uses(part)) {
            names.push(types.spell(Tag::In(part, entity_type), scheme).to_string());
        }
    }
    Ok(names)
}
