//! Parquet files of Hugging Face `datasets`, with lists of tokens and of tags. Their codec is in [`crate::parquet_file`].

use super::{FileFormat, Format, Part, WriteSettings, WrittenFile};
use crate::bounded::copy;
use crate::convert::tag_names;
use crate::error::Error;
use crate::format::{ReadOptions, Structure};
use crate::jsonl::{TAGS_KEYS, TOKENS_KEYS, TagNames};
use crate::mention::mentions;
use crate::parquet_file::{
    GivenNames, ParquetRow, ParquetTable, TagCells, TagColumn, TaggedRow, read_table_within,
    write_table,
};
use crate::problem::Fault;
use crate::record::Record;
use crate::scheme::{Scheme, Transitions};
use crate::source::Source;
use crate::spans::{
    Document, DocumentsBuilder, OffsetUnit, Place, RawDocument, RawSpan, for_each_sentence,
};
use crate::tag::{EntityTypes, Tag};

/// The format `parquet`.
#[derive(Debug)]
pub(super) struct Parquet;

impl FileFormat for Parquet {
    fn name(&self) -> &'static str {
        "parquet"
    }

    fn extensions(&self) -> &'static [&'static str] {
        &["parquet"]
    }

    fn holds(&self) -> &'static [Part] {
        &[Part::Tokens, Part::Sentences]
    }

    fn is_binary(&self, bytes: &[u8]) -> bool {
        bytes.starts_with(b"PAR1")
    }

    fn detect(&self, source: &Source) -> bool {
        self.is_binary(source.binary())
    }

    fn read(&self, source: &Source, options: &ReadOptions) -> Result<Structure, Error> {
        let given = GivenNames {
            tokens_column: options.tokens_key.as_deref(),
            tags_column: options.tags_key.as_deref(),
            classes: options.names.as_ref(),
        };
        let bytes = copy(&source.content())
            .map_err(|cause| Error::Read { name: source.name().to_owned(), source: cause })?;
        match read_table_within(bytes, given, source.limits()) {
            Ok(table) => {
                TaggedTable::read(table, options.scheme).build(source, Format(&Parquet), options)
            }
            Err(fault) => {
                let mut builder = new_builder(source, Format(&Parquet), options);
                let (message, cure) = (fault.to_string(), fault.cure());
                builder.report(place(1), Fault::Record { message, cure });
                builder.finish()
            }
        }
    }

    fn write(
        &self,
        documents: &[Document],
        settings: &WriteSettings,
    ) -> Result<Vec<WrittenFile>, Error> {
        let mut rows: Vec<TaggedTokens> = Vec::new();
        let mut types = EntityTypes::default();
        let collect = |record: &Record<'_>, known: &EntityTypes| -> Result<(), Error> {
            let tokens = record.tokens.iter().map(ToString::to_string).collect();
            let tag = |&tag: &Tag| match tag {
                Tag::Outside => Tag::Outside,
                Tag::In(prefix, entity_type) => {
                    Tag::In(prefix, types.intern(known.name(entity_type)))
                }
            };
            rows.push(TaggedTokens { tokens, tags: record.tags.iter().map(tag).collect() });
            Ok(())
        };
        for_each_sentence(documents, settings.scheme, collect)?;
        let classes = tag_names(&types, settings.scheme);
        let id = |tag: &Tag| {
            let name = types.spell(*tag, settings.scheme).to_string();
            let at = classes.iter().position(|class| *class == name);
            i64::try_from(at.expect("the classes have all tags")).expect("ids are small")
        };
        let rows: Vec<_> = rows
            .iter()
            .map(|row| TaggedRow {
                tokens: row.tokens.iter().map(String::as_str).collect(),
                tags: row.tags.iter().map(id).collect(),
            })
            .collect();
        let tags = TagColumn { name: TAGS_KEYS[0], classes: &classes };
        let bytes = write_table(TOKENS_KEYS[0], tags, &rows);
        Ok(vec![WrittenFile { extension: "parquet", bytes }])
    }
}

fn place(row: usize) -> Place {
    Place { line: row, span: 0..0 }
}

fn new_builder<'s>(
    source: &'s Source,
    format: Format,
    options: &ReadOptions,
) -> DocumentsBuilder<'s> {
    // The offsets of a span are made from tokens, so that no other unit can be right.
    let options = ReadOptions { offset_unit: None, ..options.clone() };
    DocumentsBuilder::new(source, format, OffsetUnit::Byte, &options)
}

/// The tokens and tags of a row.
struct TaggedTokens {
    tokens: Vec<String>,
    tags: Vec<Tag>,
}

/// The rows of a file with their tags.
struct TaggedTable {
    /// The tokens and tags of each row, or what is wrong with the row.
    rows: Vec<Result<TaggedTokens, Vec<Fault>>>,
    types: EntityTypes,
    scheme: Scheme,
    n_other_columns: usize,
}

impl TaggedTable {
    /// Reads the tags and detects their scheme, unless it is given.
    fn read(table: ParquetTable, scheme: Option<Scheme>) -> Self {
        let mut types = EntityTypes::default();
        let mut transitions = Transitions::default();
        let names = table.names.unwrap_or_default();
        let mut rows = Vec::with_capacity(table.rows.len());
        for row in table.rows {
            let tags = read_tags(&row, &names, &mut types);
            if let Ok(tags) = &tags {
                transitions.add(tags);
            }
            rows.push(tags.map(|tags| TaggedTokens { tokens: row.tokens, tags }));
        }
        let detected = || transitions.detect(types.end_letters()).scheme;
        let scheme = scheme.unwrap_or_else(detected);
        Self { rows, types, scheme, n_other_columns: table.other_columns.len() }
    }

    /// Checks all rows and makes a document of each.
    fn build(
        self,
        source: &Source,
        format: Format,
        options: &ReadOptions,
    ) -> Result<Structure, Error> {
        let options = ReadOptions { scheme: Some(self.scheme), ..options.clone() };
        let mut builder = new_builder(source, format, &options);
        builder.counts.leave_out("other columns", self.n_other_columns);
        let letters = self.types.end_letters();
        if letters.iobes && letters.bilou {
            builder.report(place(1), Fault::MixedLetters);
        }
        for (at, row) in self.rows.into_iter().enumerate() {
            let place = place(at + 1);
            match row {
                Ok(TaggedTokens { tokens, tags }) => {
                    let mut violations = self.scheme.violations(&tags).peekable();
                    if violations.peek().is_none() {
                        builder.add(to_document(&tokens, &tags, &self.types, place));
                        continue;
                    }
                    for at in violations {
                        let fault = describe_violation(&tags, at, &self.types, self.scheme);
                        builder.report(place.clone(), fault);
                    }
                }
                Err(faults) => {
                    for fault in faults {
                        builder.report(place.clone(), fault);
                    }
                }
            }
        }
        builder.finish()
    }
}

/// Returns the tags of a row, or everything that is wrong with them.
fn read_tags(
    row: &ParquetRow,
    names: &TagNames,
    types: &mut EntityTypes,
) -> Result<Vec<Tag>, Vec<Fault>> {
    let n_names = names.len();
    let texts: Vec<Result<&str, Fault>> = match &row.tags {
        TagCells::Texts(texts) => texts.iter().map(|text| Ok(text.as_str())).collect(),
        TagCells::Ids(ids) => ids
            .iter()
            .map(|&id| {
                let name = usize::try_from(id).ok().and_then(|id| names.get(id));
                name.map(String::as_str).ok_or(Fault::UnknownTagId { id, n_names })
            })
            .collect(),
    };
    if texts.len() != row.tokens.len() {
        return Err(vec![Fault::TagCount { n_tokens: row.tokens.len(), n_tags: texts.len() }]);
    }
    let mut tags = Vec::with_capacity(texts.len());
    let mut faults = Vec::new();
    for text in texts {
        match text.and_then(|text| types.parse(text).map_err(Fault::from)) {
            Ok(tag) => tags.push(tag),
            Err(fault) => faults.push(fault),
        }
    }
    if faults.is_empty() { Ok(tags) } else { Err(faults) }
}

/// Makes a text of tokens, joined by spaces, with the mentions of `tags`, which are valid in their scheme.
fn to_document(tokens: &[String], tags: &[Tag], types: &EntityTypes, place: Place) -> RawDocument {
    let document = RawDocument::from_tokens(tokens);
    let ranges = document.tokens.as_deref().unwrap_or_default();
    let spans = mentions(tags).map(|mention| RawSpan {
        start: ranges[mention.tokens.start].start,
        end: ranges[mention.tokens.end - 1].end,
        entity_type: types.name(mention.entity_type).to_owned(),
        surface: None,
        place: place.clone(),
    });
    let spans = spans.collect();
    RawDocument { spans, place, ..document }
}

/// Returns the fault of a tag that may not follow the tag before it.
fn describe_violation(tags: &[Tag], at: usize, types: &EntityTypes, scheme: Scheme) -> Fault {
    let spell = |tag: Option<&Tag>, edge: &str| {
        tag.map_or(edge.to_owned(), |&tag| format!("`{}`", types.spell(tag, scheme)))
    };
    let before = spell(at.checked_sub(1).map(|before| &tags[before]), "the start of a row");
    let found = spell(tags.get(at), "the end of the row");
    Fault::Record {
        message: format!("{found} cannot follow {before} in {scheme}"),
        cure: "correct the tag, or pass the right scheme with `--scheme`",
    }
}
