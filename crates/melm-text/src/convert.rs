//! Converts a file to another format or tag scheme without losing its other columns or keys.

use std::io::{self, Write};

use crate::conll::{ConllWriter, Separator};
use crate::error::Error;
use crate::format::{ReadOptions, Structure, Writer};
use crate::formats::Format;
use crate::jsonl::{JsonlWriter, TAGS_KEYS, TagNames};
use crate::mention::{count_merged_by_io, mentions, write_tags};
use crate::record::Record;
use crate::scheme::Scheme;
use crate::source::Source;
use crate::survey::Survey;
use crate::tag::{EntityTypes, Tag, TagPrefix};

/// The settings of a conversion. The default changes nothing.
#[derive(Debug, Clone, Copy, Default)]
pub struct Conversion {
    /// The output format; `None` for the format of the input.
    pub format: Option<Format>,
    /// The output scheme; `None` for the scheme of the input.
    pub scheme: Option<Scheme>,
    /// Corrects tags that the scheme does not allow. If false, such tags are errors.
    pub repair: bool,
    /// CoNLL output: the separator of columns; `None` for the separator of the input.
    pub separator: Option<Separator>,
    /// JSON lines output: writes tags as ids. [`Converter::names`] returns the tag of each id.
    pub tag_ids: bool,
}

/// Converts one file to CoNLL rows or JSON lines, sentence by sentence. To write another format, use
/// [`crate::convert_documents`].
///
/// ```
/// use melm_text::{Conversion, Converter, Format, ReadOptions, Source};
/// let source = Source::from_text("a.conll", "Ada B-PER\nsang O\n");
/// let conversion = Conversion { format: Some(Format::JSONL), ..Conversion::default() };
/// let mut out = Vec::new();
/// Converter::new(&source, &ReadOptions::default(), conversion)?.write(&mut out, |_| {})?;
/// assert_eq!(out, b"{\"tokens\":[\"Ada\",\"sang\"],\"ner_tags\":[\"B-PER\",\"O\"]}\n");
/// # Ok::<(), melm_text::Error>(())
/// ```
#[derive(Debug)]
pub struct Converter<'a> {
    source: &'a Source,
    options: &'a ReadOptions,
    conversion: Conversion,
    structure: Structure,
    /// The scheme of the tags that are written; `None` if tags stay as they are.
    scheme: Option<Scheme>,
    names: Option<TagNames>,
    is_checked: bool,
}

/// The counts of a finished conversion.
#[derive(Debug, Clone)]
pub struct ConversionReport {
    /// The counts, scheme and problems of the input.
    pub survey: Survey,
    /// The output format.
    pub format: Format,
    /// The output scheme.
    pub scheme: Scheme,
    /// The number of mentions that were joined with the mention before, because the scheme IO cannot separate them.
    pub n_merged: usize,
    /// The number of tags that differ from the input. Always 0 if tags were not rewritten in a scheme.
    pub n_changed_tags: usize,
    /// The number of comments (JSON lines output) or values (CoNLL output) that were left out, because the output
    /// format cannot store them.
    pub n_left_out: usize,
}

impl<'a> Converter<'a> {
    /// Prepares a conversion. Reads and checks the whole file if its scheme or its tags must be known before writing.
    ///
    /// Fails as [`Structure::detect`] and, if it reads the file, as [`Self::check`] does.
    pub fn new(
        source: &'a Source,
        options: &'a ReadOptions,
        conversion: Conversion,
    ) -> Result<Self, Error> {
        let structure = Structure::detect(source, options)?;
        let scheme = conversion.scheme;
        let mut converter =
            Self { source, options, conversion, structure, scheme, names: None, is_checked: false };
        let has_ids = conversion.tag_ids && converter.format() == Format::JSONL;
        if has_ids || (conversion.repair && scheme.is_none()) {
            let survey = converter.read_checked()?;
            let scheme = scheme.unwrap_or(survey.scheme.scheme);
            converter.scheme = Some(scheme);
            converter.names = has_ids.then(|| tag_names(&survey.types, scheme));
            converter.is_checked = true;
        }
        Ok(converter)
    }

    /// The output format.
    pub fn format(&self) -> Format {
        self.conversion.format.unwrap_or(self.structure.format())
    }

    /// The tags in the order of their ids, if tags are written as ids.
    pub fn names(&self) -> Option<&TagNames> {
        self.names.as_ref()
    }

    /// Reads and checks the whole file without writing. Call this before [`Self::write`] if written bytes cannot be
    /// removed again, as with a pipe.
    ///
    /// Fails if the file has problems. Also fails if columns would be separated by spaces and one of them contains a
    /// space ([`Error::Unwritable`]).
    pub fn check(&self) -> Result<(), Error> {
        if !self.is_checked {
            self.read_checked()?;
        }
        Ok(())
    }

    /// Writes the converted file to `out`. Calls `on_progress` with the number of bytes read so far.
    ///
    /// Fails as [`Self::check`] does, and with [`Error::Write`] if `out` fails. After a failure, `out` contains only a
    /// part of the file and must be discarded.
    pub fn write(
        &self,
        out: impl Write,
        mut on_progress: impl FnMut(usize),
    ) -> Result<ConversionReport, Error> {
        let mut pass = Pass {
            writer: self.writer(out),
            scheme: self.scheme,
            n_merged: 0,
            n_changed_tags: 0,
            n_left_out: 0,
            tags: Vec::new(),
        };
        let mut n_sentences = 0;
        let mut failure = None;
        let survey = Survey::read(self.source, self.options, |record, types, position| {
            n_sentences += 1;
            if failure.is_none() {
                failure = match self.find_unwritable(record, types) {
                    Some(column) => Some(Error::Unwritable { column, sentence: n_sentences }),
                    None => pass.write(record, types).err().map(|source| Error::Write { source }),
                };
            }
            on_progress(position);
        })?;
        // Report problems of the file first, because they may be the cause of the failure.
        survey.require_sound(self.source, self.conversion.repair)?;
        if let Some(failure) = failure {
            return Err(failure);
        }
        pass.finish(&survey).map_err(|source| Error::Write { source })?;
        Ok(ConversionReport {
            format: self.format(),
            scheme: self.scheme.unwrap_or(survey.scheme.scheme),
            n_merged: pass.n_merged,
            n_changed_tags: pass.n_changed_tags,
            n_left_out: pass.n_left_out,
            survey,
        })
    }

    fn read_checked(&self) -> Result<Survey, Error> {
        let mut n_sentences = 0;
        let mut unwritable = None;
        let survey = Survey::read(self.source, self.options, |record, types, _| {
            n_sentences += 1;
            if unwritable.is_none() {
                let column = self.find_unwritable(record, types);
                unwritable = column.map(|column| (column, n_sentences));
            }
        })?;
        survey.require_sound(self.source, self.conversion.repair)?;
        match unwritable {
            Some((column, sentence)) => Err(Error::Unwritable { column, sentence }),
            None => Ok(survey),
        }
    }

    fn writer<W: Write>(&self, out: W) -> Writer<W> {
        let (tags_key, separator) = match &self.structure {
            Structure::Jsonl { keys, .. } => (keys.tags.as_str(), None),
            Structure::Conll(layout) => (TAGS_KEYS[0], Some(layout.separator)),
            Structure::Documents(_) => (TAGS_KEYS[0], None),
        };
        if self.format() == Format::JSONL {
            let names = self.names.clone();
            return Writer::Jsonl(JsonlWriter::new(out, self.scheme, tags_key, names));
        }
        let writer = ConllWriter::new(out, self.scheme);
        Writer::Conll(match self.conversion.separator {
            None => writer,
            Some(to) => writer.with_separator(to, separator),
        })
    }

    /// Finds a column that is empty or contains a space, if the output separates columns by spaces.
    fn find_unwritable(&self, record: &Record<'_>, types: &EntityTypes) -> Option<String> {
        if self.conversion.separator != Some(Separator::Space) {
            return None;
        }
        let is_unfit = |column: &str| column.is_empty() || column.contains(' ');
        let token = record.tokens.iter().find(|token| is_unfit(token)).map(ToString::to_string);
        let in_types = || {
            let mut names = record.tags.iter().filter_map(|t| Some(types.name(t.entity_type()?)));
            names.find(|name| name.contains(' ')).map(str::to_owned)
        };
        let in_rows = || {
            let rows = record.rows.iter().filter(|row| row.text.contains('\t'));
            let mut columns = rows.flat_map(|row| row.text.trim_end_matches(' ').split('\t'));
            columns.find(|column| is_unfit(column)).map(str::to_owned)
        };
        token.or_else(in_types).or_else(in_rows)
    }
}

/// One pass that writes sentences and counts.
struct Pass<W> {
    writer: Writer<W>,
    scheme: Option<Scheme>,
    n_merged: usize,
    n_changed_tags: usize,
    n_left_out: usize,
    /// The tags of the current sentence, stored here so that the memory is reused.
    tags: Vec<Tag>,
}

impl<W: Write> Pass<W> {
    fn write(&mut self, record: &Record<'_>, types: &EntityTypes) -> io::Result<()> {
        self.n_left_out += self.count_left_out(record);
        let Some(scheme) = self.scheme else {
            let is_copy = match &self.writer {
                Writer::Jsonl(_) => !record.fields.is_empty(),
                Writer::Conll(writer) => !record.rows.is_empty() && !writer.replaces_separators(),
            };
            return if is_copy {
                self.writer.copy(record)
            } else {
                self.writer.write(record, &record.tags, types)
            };
        };
        self.tags.resize(record.tags.len(), Tag::Outside);
        write_tags(mentions(&record.tags), scheme, &mut self.tags);
        if scheme == Scheme::Io {
            self.n_merged += count_merged_by_io(&record.tags);
        }
        self.n_changed_tags += self.tags.iter().zip(&record.tags).filter(|(a, b)| a != b).count();
        self.writer.write(record, &self.tags, types)
    }

    /// Counts the parts of a sentence that the output format cannot store: comments in JSON lines, other values in
    /// CoNLL.
    fn count_left_out(&self, record: &Record<'_>) -> usize {
        let id = record.id();
        match &self.writer {
            // A comment that contains only the id is not lost: it becomes the key `id`.
            Writer::Jsonl(_) if !record.rows.is_empty() => {
                let is_lost = |line: &&&str| id.is_none_or(|id| !line.ends_with(id));
                record.lines_before.iter().filter(is_lost).count()
            }
            Writer::Conll(_) if !record.fields.is_empty() => {
                record.fields.len() - 2 - usize::from(id.is_some())
            }
            _ => 0,
        }
    }

    /// Writes the lines after the last sentence.
    fn finish(&mut self, survey: &Survey) -> io::Result<()> {
        if matches!(self.writer, Writer::Jsonl(_)) {
            self.n_left_out += survey.lines_after.len();
        }
        self.writer.write_lines_after(&survey.lines_after)
    }
}

/// Returns every tag that the scheme can write for these types, `O` first.
pub(crate) fn tag_names(types: &EntityTypes, scheme: Scheme) -> TagNames {
    let prefixes = [TagPrefix::Begin, TagPrefix::Inside, TagPrefix::End, TagPrefix::Single];
    let mut names = vec!["O".to_owned()];
    for entity_type in types.sorted_by_name() {
        for prefix in prefixes.into_iter().filter(|&prefix| scheme.uses(prefix)) {
            names.push(types.spell(Tag::In(prefix, entity_type), scheme).to_string());
        }
    }
    names
}
